#include "core/rpc/http_target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace warpsmith {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The byte that the escape at `text[at]` stands for; nothing where none is there.
std::optional<char> EscapeAt(std::string_view text, size_t at) {
  const bool is_escape =
      text[at] == '%' && at + 2 < text.size() && HexDigit(text[at + 1]) >= 0 && HexDigit(text[at + 2]) >= 0;
  if (!is_escape) return std::nullopt;
  return static_cast<char>(HexDigit(text[at + 1]) * 16 + HexDigit(text[at + 2]));
}

// Decodes a value of an HTML form.
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = EscapeAt(text, i);
    decoded.push_back(byte.has_value() ? *byte : text[i] == '+' ? ' ' : text[i]);
    if (byte.has_value()) i += 2;
  }
  return decoded;
}

}  // namespace

std::string_view PathOf(std::string_view target) {
  return target.substr(0, std::min(target.find('?'), target.size()));
}

std::optional<std::string> DecodedPath(std::string_view path) {
  std::string decoded;
  for (size_t i = 0; i < path.size(); ++i) {
    const std::optional<char> byte = EscapeAt(path, i);
    if (path[i] == '%' && !byte.has_value()) return std::nullopt;
    decoded.push_back(byte.value_or(path[i]));
    if (byte.has_value()) i += 2;
  }
  return decoded;
}

std::map<std::string, std::string> QueryOf(std::string_view target) {
  std::map<std::string, std::string> query;
  const size_t mark = target.find('?');
  if (mark == std::string_view::npos) return query;
  const std::string pairs(target.substr(mark + 1));
  for (const absl::string_view pair : absl::StrSplit(pairs, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    query[Decoded({parts.first.data(), parts.first.size()})] =
        Decoded({parts.second.data(), parts.second.size()});
  }
  return query;
}

}  // namespace warpsmith
