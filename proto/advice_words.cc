#include "proto/advice_words.h"

namespace warpsmith {

std::string_view AdviceWords(v1::Advice advice) {
  const auto* const value = v1::Advice_descriptor()->FindValueByNumber(advice);
  if (value == nullptr) return "";
  return value->options().GetExtension(v1::words);
}

v1::Advice AdviceOfWords(std::string_view words) {
  if (words.empty()) return v1::ADVICE_UNSPECIFIED;
  for (int value = v1::Advice_MIN; value <= v1::Advice_MAX; ++value) {
    if (AdviceWords(static_cast<v1::Advice>(value)) == words) return static_cast<v1::Advice>(value);
  }
  return v1::ADVICE_UNSPECIFIED;
}

std::string AllAdviceWords() {
  std::string all;
  for (int value = v1::Advice_MIN; value <= v1::Advice_MAX; ++value) {
    const std::string_view words = AdviceWords(static_cast<v1::Advice>(value));
    if (!words.empty()) all.append(all.empty() ? "" : ", ").append(words);
  }
  return all;
}

}  // namespace warpsmith
