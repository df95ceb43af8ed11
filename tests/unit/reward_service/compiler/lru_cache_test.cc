#include "reward_service/compiler/lru_cache.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the entry that was used longest ago makes room") {
  LruCache<int> cache(30);
  cache.Insert("a", 1, 10);
  cache.Insert("b", 2, 10);
  cache.Insert("c", 3, 10);
  REQUIRE(cache.Find("a") != nullptr);  // now more recent than b
  cache.Insert("d", 4, 10);
  CHECK(cache.Find("b") == nullptr);
  CHECK(*cache.Find("a") == 1);
  CHECK(*cache.Find("d") == 4);
  CHECK(cache.bytes() == 30);
}

TEST_CASE("inserting a key again replaces its value and its cost") {
  LruCache<int> cache(30);
  cache.Insert("a", 1, 10);
  cache.Insert("a", 2, 20);
  CHECK(*cache.Find("a") == 2);
  CHECK(cache.bytes() == 20);
  CHECK(cache.size() == 1);
}

TEST_CASE("a value over the whole budget is not kept and evicts nothing") {
  LruCache<int> cache(30);
  cache.Insert("a", 1, 10);
  cache.Insert("b", 2, 31);
  CHECK(cache.Find("b") == nullptr);
  CHECK(*cache.Find("a") == 1);
}

TEST_CASE("erasing gives the budget back and forgets nothing else") {
  LruCache<int> cache(30);
  cache.Insert("a", 1, 10);
  cache.Erase("a");
  cache.Erase("never there");
  CHECK(cache.Find("a") == nullptr);
  CHECK(cache.bytes() == 0);
}

}  // namespace
}  // namespace warpsmith
