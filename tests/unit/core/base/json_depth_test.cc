#include "core/base/json_depth.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST_CASE("lists and objects count where they are within each other") {
  CHECK_FALSE(NestsDeeperThan("", 0));
  CHECK_FALSE(NestsDeeperThan("3", 0));
  CHECK(NestsDeeperThan("[]", 0));
  CHECK_FALSE(NestsDeeperThan(R"([[], {}, [3, {}]])", 3));
  CHECK(NestsDeeperThan(R"([[], {}, [3, {}]])", 2));
  CHECK_FALSE(NestsDeeperThan(Nested(kJsonDepthMax)));
  CHECK(NestsDeeperThan(Nested(kJsonDepthMax + 1)));
}

TEST_CASE("brackets within text do not count, whatever quotes stand there") {
  CHECK_FALSE(NestsDeeperThan(R"({"[[[": "{{{\"[[[\\"})", 1));
  CHECK(NestsDeeperThan(R"({"\\": [[3]]})", 2));
  CHECK_FALSE(NestsDeeperThan("\"[[\\", 0));
}

TEST_CASE("a NUL byte is seen wherever it stands") {
  CHECK(HasNul(std::string_view("{}\0x", 4)));
  CHECK(HasNul(std::string_view("\0", 1)));
  CHECK_FALSE(HasNul("{\"a\": \"\\u0000\"}"));
}

}  // namespace
}  // namespace warpsmith
