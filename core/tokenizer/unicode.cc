#include "core/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "core/base/check.h"
#include "core/tokenizer/unicode_additions.h"

namespace warpsmith {
namespace {

const utf8proc_uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

struct Character {
  utf8proc_int32_t code_point = -1;
  size_t num_bytes = 0;
};

Character First(std::string_view text) {
  if (text.empty()) return {};
  Character first;
  const auto num_bytes =
      utf8proc_iterate(Bytes(text), static_cast<utf8proc_ssize_t>(text.size()), &first.code_point);
  first.num_bytes = static_cast<size_t>(std::max<utf8proc_ssize_t>(0, num_bytes));
  return first;
}

Character Last(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && (static_cast<unsigned char>(text[begin - 1]) & 0xc0) == 0x80) --begin;
  return begin == 0 ? Character() : First(text.substr(begin - 1));
}

bool IsSpace(utf8proc_int32_t c) {
  return (c >= 9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsWordCharacter(utf8proc_int32_t c) {
  if (c < 0) return false;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9);  // joiners, circled letters
  }
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

struct FreeMalloced {
  void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
};

bool IsMarkSince10(utf8proc_int32_t c) {
  if (c < kMarksSince10[0].first) return false;
  const auto ends_before = [](const CodePointRange& range, utf8proc_int32_t wanted) {
    return range.last < wanted;
  };
  const auto* range = std::lower_bound(std::begin(kMarksSince10), std::end(kMarksSince10), c, ends_before);
  return range != std::end(kMarksSince10) && range->first <= c;
}

// NFC by Unicode 15.
std::string ComposeWhole(std::string_view text) {
  if (text.empty()) return "";
  utf8proc_uint8_t* composed = nullptr;
  const auto size = utf8proc_map(Bytes(text), static_cast<utf8proc_ssize_t>(text.size()), &composed,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, FreeMalloced> owner(composed);
  WS_CHECK(size >= 0) << utf8proc_errmsg(size);
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
}

}  // namespace

std::string NormalizeNfc(std::string_view text) {
  if (IsAscii(text)) return std::string(text);
  std::string normalized;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = First(text.substr(at));
    WS_CHECK(character.num_bytes > 0) << "not UTF-8 at byte " << at;
    if (IsMarkSince10(character.code_point)) {
      normalized += ComposeWhole(text.substr(done, at - done));
      normalized += text.substr(at, character.num_bytes);
      done = at + character.num_bytes;
    }
    at += character.num_bytes;
  }
  return normalized + ComposeWhole(text.substr(done));
}

size_t FirstSpaceLength(std::string_view text) {
  const Character first = First(text);
  return IsSpace(first.code_point) ? first.num_bytes : 0;
}

size_t LastSpaceLength(std::string_view text) {
  const Character last = Last(text);
  return IsSpace(last.code_point) ? last.num_bytes : 0;
}

bool BeginsWithWordCharacter(std::string_view text) { return IsWordCharacter(First(text).code_point); }

bool EndsInWordCharacter(std::string_view text) { return IsWordCharacter(Last(text).code_point); }

}  // namespace warpsmith
