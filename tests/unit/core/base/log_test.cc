#include "core/base/log.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("escaped text stays on one line and keeps no control character") {
  CHECK(Escape("a\nb\x1b[31m\xff") == "a\\nb\\x1b[31m\\xff");
}

TEST_CASE("escaped text keeps what is printable in UTF-8, and nothing else") {
  CHECK(Escape("caf\xc3\xa9 \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xf0\x9f\x98\x80");
  CHECK(Escape("\xc2\x9b"
               "31m\xc3") == "\\xc2\\x9b31m\\xc3");
  CHECK(Escape("\x7f\t") == "\\x7f\\x09");
  CHECK(Escape("ab\xc3\xa9", 3) == "ab...");
}

TEST_CASE("escaped text is cut with a mark") { CHECK(Escape("abcdef", 3) == "abc..."); }

}  // namespace warpsmith
