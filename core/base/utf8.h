// UTF-8 (RFC 3629): checking, repairing, and cutting between characters.
#ifndef WARPSMITH_CORE_BASE_UTF8_H_
#define WARPSMITH_CORE_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace warpsmith {

// Bytes of the valid character that `text` begins with, or 0. Overlong forms, surrogates and what lies beyond
// U+10FFFF are not valid.
size_t Utf8CharacterLength(std::string_view text);

bool IsValidUtf8(std::string_view text);

// `text` without the byte order mark, EF BB BF, that some editors put before a file.
std::string_view WithoutByteOrderMark(std::string_view text);

// `text` with each maximal invalid part as one U+FFFD (Unicode 15, section 3.9, "substitution of maximal
// subparts"): what Python's and Rust's lossy decoding give.
std::string ReplaceInvalidUtf8(std::string_view text);

// Bytes at the end of `text`, at most 3, that begin a valid character and want more bytes.
size_t IncompleteUtf8Suffix(std::string_view text);

// The longest prefix of `text` of at most `bytes_max` bytes that cuts no valid character.
std::string_view CutUtf8(std::string_view text, size_t bytes_max);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_UTF8_H_
