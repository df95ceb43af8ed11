#include "core/base/utf8.h"

#include <algorithm>

namespace warpsmith {
namespace {

// What a lead byte asks for (Unicode 15, table 3-7): the length, and the range of the second byte. Bytes
// after the second are 80..BF. Length 0: not a lead byte.
struct LeadByte {
  size_t length;
  unsigned char second_min;
  unsigned char second_max;
};

LeadByte ClassifyLead(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xc2) return {0, 0, 0};
  if (lead < 0xe0) return {2, 0x80, 0xbf};
  if (lead == 0xe0) return {3, 0xa0, 0xbf};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead < 0xf0) return {3, 0x80, 0xbf};
  if (lead == 0xf0) return {4, 0x90, 0xbf};
  if (lead < 0xf4) return {4, 0x80, 0xbf};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

// The first bytes of a character: how many of them are right, and how many it asks for.
struct Prefix {
  size_t valid;
  size_t wanted;
};

Prefix ScanCharacter(std::string_view text) {
  if (text.empty()) return {0, 0};
  const LeadByte lead = ClassifyLead(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {0, 0};
  size_t valid = 1;
  for (; valid < lead.length && valid < text.size(); ++valid) {
    const auto byte = static_cast<unsigned char>(text[valid]);
    const unsigned char min = valid == 1 ? lead.second_min : 0x80;
    const unsigned char max = valid == 1 ? lead.second_max : 0xbf;
    if (byte < min || byte > max) break;
  }
  return {valid, lead.length};
}

}  // namespace

size_t Utf8CharacterLength(std::string_view text) {
  const Prefix prefix = ScanCharacter(text);
  return prefix.valid == prefix.wanted ? prefix.valid : 0;
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const Prefix prefix = ScanCharacter(text);
    const bool is_valid = prefix.valid > 0 && prefix.valid == prefix.wanted;
    const size_t num_bytes = std::max<size_t>(1, prefix.valid);
    repaired.append(is_valid ? text.substr(0, num_bytes) : "\xef\xbf\xbd");
    text.remove_prefix(num_bytes);
  }
  return repaired;
}

size_t IncompleteUtf8Suffix(std::string_view text) {
  for (size_t num_bytes = 1; num_bytes <= std::min<size_t>(3, text.size()); ++num_bytes) {
    const Prefix prefix = ScanCharacter(text.substr(text.size() - num_bytes));
    if (prefix.valid == num_bytes && prefix.wanted > num_bytes) return num_bytes;
  }
  return 0;
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(0, kMark.size()) == kMark ? text.substr(kMark.size()) : text;
}

std::string_view CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const std::string_view head = text.substr(0, bytes_max);
  const size_t suffix = IncompleteUtf8Suffix(head);
  const bool cuts_character = suffix > 0 && Utf8CharacterLength(text.substr(bytes_max - suffix)) > suffix;
  return cuts_character ? head.substr(0, bytes_max - suffix) : head;
}

}  // namespace warpsmith
