#include "core/tokenizer/unicode.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("normalisation composes, orders marks and leaves the rest") {
  CHECK(NormalizeNfc("plain") == "plain");
  CHECK(NormalizeNfc("") == "");
  CHECK(NormalizeNfc("e\xcc\x81") == "\xc3\xa9");
  CHECK(NormalizeNfc(std::string("\0e\xcc\x81", 4)) == std::string("\0\xc3\xa9", 3));
  CHECK(NormalizeNfc("q\xcc\x87\xcc\xa3") == "q\xcc\xa3\xcc\x87");                // below before above
  CHECK(NormalizeNfc("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab") == "\xed\x95\x9c");  // Hangul
  CHECK(NormalizeNfc("\xef\xac\x81") == "\xef\xac\x81");  // a ligature is no composition
}

TEST_CASE("marks assigned after Unicode 9 stay where they are") {
  const std::string text = "e\xe0\xa2\x98\xcc\x81";  // e, U+0898, acute
  CHECK(NormalizeNfc(text) == text);
}

TEST_CASE("white space and word characters are told at both ends") {
  CHECK(FirstSpaceLength("\xe3\x80\x80x") == 3);
  CHECK(FirstSpaceLength("x ") == 0);
  CHECK(FirstSpaceLength("") == 0);
  CHECK(LastSpaceLength("x\xc2\x85") == 2);
  CHECK(LastSpaceLength("x\xe1\xa0\x8e") == 0);
  CHECK(LastSpaceLength("") == 0);
  for (const char* word : {"a", "_", "7", "\xc3\xa9", "\xcc\x81", "\xe4\xb8\x80"}) {
    CHECK(BeginsWithWordCharacter(word));
    CHECK(EndsInWordCharacter(word));
  }
  for (const char* other : {"", " ", "-", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    CHECK_FALSE(BeginsWithWordCharacter(other));
    CHECK_FALSE(EndsInWordCharacter(other));
  }
}

}  // namespace warpsmith
