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

TEST_CASE("a path is decoded to its bytes, whatever they are, or refused for an escape that is none") {
  CHECK(DecodedPath("") == "");
  CHECK(DecodedPath("/v1/a+b") == "/v1/a+b");
  CHECK(DecodedPath("/org%2Fm%2f%25%C3%a8") == "/org/m/%\xC3\xA8");
  CHECK(DecodedPath("/%00%ff") == std::string("/\0\xff", 3));
  for (const char* const path : {"/%", "/a%4", "/%zz", "/%4z", "/%%41"})
    CHECK(DecodedPath(path) == std::nullopt);
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
