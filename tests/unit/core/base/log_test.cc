#include "core/base/log.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("escaped text stays on one line and keeps no control character") {
  CHECK(Escape("a\nb\x1b[31m\xff") == "a\\nb\\x1b[31m\\xff");
}

TEST_CASE("escaped text is cut with a mark") { CHECK(Escape("abcdef", 3) == "abc..."); }

}  // namespace warpsmith
