#include "core/rpc/http_target.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Query = std::map<std::string, std::string>;

TEST_CASE("a path ends at the question mark and keeps its escapes") {
  CHECK(PathOf("/a%20b?x=1") == "/a%20b");
  CHECK(PathOf("/a") == "/a");
  CHECK(PathOf("?x") == "");
  CHECK(PathOf("") == "");
}

TEST_CASE("a query is decoded, and the last of equal names counts") {
  CHECK(QueryOf("/a") == Query{});
  CHECK(QueryOf("/a?") == Query{});
  CHECK(QueryOf("/a?x=1%2B1&y=a+b&z&&x=2=3") == Query{{"x", "2=3"}, {"y", "a b"}, {"z", ""}});
  CHECK(QueryOf("/a?x=%4a%4A") == Query{{"x", "JJ"}});
}

TEST_CASE("an escape that is none stays as it is") {
  CHECK(QueryOf("/a?x=%&y=%4&z=%zz") == Query{{"x", "%"}, {"y", "%4"}, {"z", "%zz"}});
}

}  // namespace
}  // namespace warpsmith
