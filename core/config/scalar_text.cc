#include "core/config/scalar_text.h"

#include <charconv>
#include <cmath>

namespace warpsmith {
namespace {

// std::from_chars takes "-" but not "+"; "+-1" must stay wrong.
std::string_view WithoutPlus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  text = WithoutPlus(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<double> ParseReal(std::string_view text) {
  const std::optional<double> value = ParseWhole<double>(text);
  if (!value.has_value() || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<bool> ParseTruth(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string FormatReal(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

}  // namespace warpsmith
