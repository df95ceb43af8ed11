#include "core/base/utf8.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::string kReplacement = "\xef\xbf\xbd";

}  // namespace

TEST_CASE("characters of one to four bytes are valid") {
  CHECK(IsValidUtf8(""));
  CHECK(IsValidUtf8("plain"));
  CHECK(IsValidUtf8(std::string("\0", 1)));
  CHECK(Utf8CharacterLength("\x7f") == 1);
  CHECK(Utf8CharacterLength("\xc2\x80") == 2);
  CHECK(Utf8CharacterLength("\xe0\xa0\x80") == 3);
  CHECK(Utf8CharacterLength("\xed\x9f\xbf") == 3);
  CHECK(Utf8CharacterLength("\xf0\x90\x80\x80") == 4);
  CHECK(Utf8CharacterLength("\xf4\x8f\xbf\xbf") == 4);
}

TEST_CASE("overlong forms, surrogates, stray and missing bytes are not valid") {
  for (const std::string text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98"}) {
    CHECK_FALSE(IsValidUtf8(text));
    CHECK(Utf8CharacterLength(text) == 0);
  }
}

TEST_CASE("repair replaces each maximal invalid part once") {
  CHECK(ReplaceInvalidUtf8("fine \xc3\xa9") == "fine \xc3\xa9");
  CHECK(ReplaceInvalidUtf8("a\xff"
                           "b") == "a" + kReplacement + "b");
  CHECK(ReplaceInvalidUtf8("\xe2\x82") == kReplacement);
  CHECK(ReplaceInvalidUtf8("\xf0\x9f\x98"
                           "x") == kReplacement + "x");
  // The example of the Unicode standard, table 3-8.
  CHECK(ReplaceInvalidUtf8("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41") ==
        kReplacement + kReplacement + kReplacement + kReplacement + kReplacement + kReplacement +
            kReplacement + kReplacement + "A");
  // Table 3-11: truncated sequences.
  CHECK(ReplaceInvalidUtf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41") ==
        kReplacement + kReplacement + kReplacement + kReplacement + "A");
}

TEST_CASE("an unfinished character at the end is counted") {
  CHECK(IncompleteUtf8Suffix("") == 0);
  CHECK(IncompleteUtf8Suffix("abc") == 0);
  CHECK(IncompleteUtf8Suffix("a\xc3") == 1);
  CHECK(IncompleteUtf8Suffix("a\xe2\x82") == 2);
  CHECK(IncompleteUtf8Suffix("a\xf0\x9f\x98") == 3);
  CHECK(IncompleteUtf8Suffix("\xc3\xa9") == 0);
  CHECK(IncompleteUtf8Suffix("\x80\x80") == 0);
  CHECK(IncompleteUtf8Suffix("\xe0\x9f") == 0);
}

TEST_CASE("a byte order mark is taken from the front, once") {
  CHECK(WithoutByteOrderMark("\uFEFFa\uFEFF") == "a\uFEFF");
  for (const char* const text : {"", "a", "\xEF\xBB", "a\uFEFF"}) CHECK(WithoutByteOrderMark(text) == text);
}

TEST_CASE("a cut falls between characters") {
  const std::string text =
      "a\xe2\x82\xac"
      "b";  // a, euro sign, b
  CHECK(CutUtf8(text, 10) == text);
  CHECK(CutUtf8(text, 5) == text);
  CHECK(CutUtf8(text, 4) == "a\xe2\x82\xac");
  CHECK(CutUtf8(text, 3) == "a");
  CHECK(CutUtf8(text, 2) == "a");
  CHECK(CutUtf8(text, 0).empty());
}

}  // namespace warpsmith
