#include "proto/language_names.h"

namespace warpsmith {
namespace {

constexpr std::string_view kPrefix = "CANDIDATE_LANGUAGE_";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string LanguageName(v1::CandidateLanguage language) {
  if (language == v1::CANDIDATE_LANGUAGE_UNSPECIFIED || !v1::CandidateLanguage_IsValid(language)) return "";
  std::string name = v1::CandidateLanguage_Name(language).substr(kPrefix.size());
  for (char& c : name) c = Lower(c);
  return name;
}

v1::CandidateLanguage LanguageOfName(std::string_view name) {
  if (name.empty()) return v1::CANDIDATE_LANGUAGE_UNSPECIFIED;
  for (int value = v1::CandidateLanguage_MIN; value <= v1::CandidateLanguage_MAX; ++value) {
    const auto language = static_cast<v1::CandidateLanguage>(value);
    if (LanguageName(language) == name) return language;
  }
  return v1::CANDIDATE_LANGUAGE_UNSPECIFIED;
}

std::vector<std::string> LanguageNames() {
  std::vector<std::string> names;
  for (int value = v1::CandidateLanguage_MIN; value <= v1::CandidateLanguage_MAX; ++value) {
    std::string name = LanguageName(static_cast<v1::CandidateLanguage>(value));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string AllLanguageNames() {
  const std::vector<std::string> names = LanguageNames();
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) all.append(i + 1 < names.size() ? ", " : " or ");
    all.append(names[i]);
  }
  return all;
}

}  // namespace warpsmith
