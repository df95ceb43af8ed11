// Where the Unicode tables of PCRE2 and utf8proc differ from those of the `tokenizers` package.
//
// The package splits by Unicode 16; PCRE2 10.42 knows Unicode 14. It normalises by Unicode 9, in which later
// marks are unassigned; utf8proc knows Unicode 15. The tables below close both gaps; they were found by
// comparing every code point with version 0.23.3 of the package, and hold characters of rare scripts only.
#ifndef WARPSMITH_CORE_TOKENIZER_UNICODE_ADDITIONS_H_
#define WARPSMITH_CORE_TOKENIZER_UNICODE_ADDITIONS_H_

#include <cstdint>
#include <string_view>

namespace warpsmith {

// Letters (general category L) of Unicode 15 and 16, as the inside of a class of a regular expression.
inline constexpr std::string_view kLettersSince15 =
    R"(\x{1c89}\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3}\x{10d4a}-\x{10d65})"
    R"(\x{10d6f}-\x{10d85})"
    R"(\x{10ec2}-\x{10ec4}\x{1123f}\x{11240}\x{11380}-\x{11389}\x{1138b}\x{1138e}\x{11390}-\x{113b5})"
    R"(\x{113b7}\x{113d1})"
    R"(\x{113d3}\x{11bc0}-\x{11be0}\x{11f02}\x{11f04}-\x{11f10}\x{11f12}-\x{11f33}\x{1342f})"
    R"(\x{13441}-\x{13446})"
    R"(\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{18cff}\x{1b132}\x{1b155})"
    R"(\x{1df25}-\x{1df2a})"
    R"(\x{1e030}-\x{1e06d}\x{1e4d0}-\x{1e4eb}\x{1e5d0}-\x{1e5ed}\x{1e5f0}\x{2b739})"
    R"(\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";

// Decimal digits (Nd) of Unicode 15 and 16, likewise.
inline constexpr std::string_view kDigitsSince15 =
    R"(\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11f50}-\x{11f59}\x{16130}-\x{16139})"
    R"(\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})";

// Numbers (N) of Unicode 15 and 16 that are no decimal digits.
inline constexpr std::string_view kOtherNumbersSince15 = R"(\x{1d2c0}-\x{1d2d3})";

// Code points [first, last].
struct CodePointRange {
  int32_t first;
  int32_t last;
};

// Combining marks assigned after Unicode 9: normalisation does not reorder them.
inline constexpr CodePointRange kMarksSince10[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
    {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42},
    {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef},
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_UNICODE_ADDITIONS_H_
