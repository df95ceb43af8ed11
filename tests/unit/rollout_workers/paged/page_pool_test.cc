#include "rollout_workers/paged/page_pool.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

std::vector<int32_t> Block(int32_t token) { return {token, token}; }

// Allocates and publishes a page of its own prefix.
int32_t Publish(PagePool& pool, int32_t token) {
  const int32_t page = pool.Allocate();
  REQUIRE(pool.Publish(page, kEmptyPrefix, Block(token)) != kNoPrefix);
  return page;
}

}  // namespace

TEST_CASE("a pool gives each page but the padding page, once") {
  PagePool pool(5, 2, 1);
  std::set<int32_t> pages;
  while (pool.num_available() > 0) pages.insert(pool.Allocate());
  CHECK(pages == std::set<int32_t>{1, 2, 3, 4});
  CHECK(pool.CheckInvariants({0, 1, 1, 1, 1}).ok());
}

TEST_CASE("a page comes back with its last reference") {
  PagePool pool(3, 2, 1);
  const int32_t page = pool.Allocate();
  pool.Retain(page);
  CHECK(pool.ref_counts()[page] == 2);
  pool.Release(page);
  CHECK(pool.num_available() == 1);
  pool.Release(page);
  CHECK(pool.num_free() == 2);
}

TEST_CASE("a released page of known content is kept, found and taken again") {
  PagePool pool(3, 2, 1);
  const int32_t page = Publish(pool, 8);
  pool.Release(page);
  CHECK(pool.num_cached() == 1);
  CHECK(pool.num_available() == 2);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(8)) == page);
  pool.Retain(page);
  CHECK(pool.num_cached() == 0);
  CHECK(pool.ref_counts()[page] == 1);
}

TEST_CASE("cached pages are given out after free ones, the least recently released first") {
  PagePool pool(5, 2, 1);
  const int32_t a = Publish(pool, 1);
  const int32_t b = Publish(pool, 2);
  const int32_t c = Publish(pool, 3);
  for (const int32_t page : {a, b, c}) pool.Release(page);
  pool.Retain(a);
  pool.Release(a);  // used again, so now the newest
  CHECK(pool.Allocate() == 4);
  CHECK(pool.Allocate() == b);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(2)) == -1);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(1)) == a);
  CHECK(pool.Allocate() == c);
  CHECK(pool.Allocate() == a);
  CHECK(pool.num_available() == 0);
}

TEST_CASE("nothing of an old version is found, whether its page is cached or in use") {
  PagePool pool(4, 2, 1);
  const int32_t cached = Publish(pool, 1);
  const int32_t used = Publish(pool, 2);
  pool.Release(cached);
  pool.ForgetContents(2);
  CHECK(pool.policy_version() == 2);
  CHECK(pool.num_cached() == 0);
  CHECK(pool.num_free() == 2);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(1)) == -1);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(2)) == -1);
  pool.Release(used);
  CHECK(pool.num_free() == 3);
  // The same tokens can be published under the new version, and are not found once that is over.
  const int32_t page = Publish(pool, 1);
  pool.ForgetContents(1);
  CHECK(pool.FindBlock(kEmptyPrefix, Block(1)) == -1);
  pool.Release(page);
}

TEST_CASE("the check sees a reference too many, one too few, and a page that is nowhere") {
  PagePool pool(4, 2, 1);
  const int32_t page = pool.Allocate();
  std::vector<int32_t> expected(4);
  CHECK_THAT(std::string(pool.CheckInvariants(expected).message()), Catch::Contains("counts 1 references"));
  expected[page] = 1;
  CHECK(pool.CheckInvariants(expected).ok());
  expected[page] = 2;
  CHECK_FALSE(pool.CheckInvariants(expected).ok());
}

TEST_CASE("10,000 random operations keep every page free, cached or counted") {
  const uint64_t seed = 4;
  INFO("seed " << seed);
  PagePool pool(17, 2, 1);
  std::vector<int32_t> held;  // a page as often as it is referenced
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t word = UniformWord(seed, i);
    const uint64_t choice = word % 100;
    const uint64_t which = (word >> 8) % std::max<size_t>(1, held.size());
    if (choice < 40 && pool.num_available() > 0) {
      held.push_back(pool.Allocate());
    } else if (choice < 50 && !held.empty()) {
      pool.Retain(held[which]);
      held.push_back(held[which]);
    } else if (choice < 80 && !held.empty()) {
      pool.Release(held[which]);
      held.erase(held.begin() + static_cast<int64_t>(which));
    } else if (choice < 95 && !held.empty()) {
      if (pool.prefix_id(held[which]) == kNoPrefix) {
        pool.Publish(held[which], kEmptyPrefix, Block(static_cast<int32_t>((word >> 20) % 30)));
      }
    } else if (choice < 99) {
      const int32_t found = pool.FindBlock(kEmptyPrefix, Block(static_cast<int32_t>((word >> 20) % 30)));
      if (found >= 0) {
        pool.Retain(found);
        held.push_back(found);
      }
    } else if (choice == 99) {
      pool.ForgetContents(i);
    }
    std::vector<int32_t> expected(17);
    for (const int32_t page : held) ++expected[page];
    REQUIRE(pool.CheckInvariants(expected).ok());
  }
}

}  // namespace warpsmith::paged
