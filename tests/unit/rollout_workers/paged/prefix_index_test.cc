#include "rollout_workers/paged/prefix_index.h"

#include <set>

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

uint64_t AlwaysSeven(const PrefixBlock&) { return 7; }

}  // namespace

TEST_CASE("a block is found by what it holds, what comes before it, and its version") {
  PrefixIndex index(8, 2, HashBlock);
  const std::vector<int32_t> tokens = {4, 5};
  const std::vector<int32_t> others = {5, 4};
  const PrefixId first = index.Insert(3, {.policy_version = 1, .token_ids = tokens});
  const PrefixId second = index.Insert(6, {.parent = first, .policy_version = 1, .token_ids = tokens});
  REQUIRE(first != kNoPrefix);
  REQUIRE(second != first);
  CHECK(index.Find({.policy_version = 1, .token_ids = tokens}) == 3);
  CHECK(index.Find({.parent = first, .policy_version = 1, .token_ids = tokens}) == 6);
  CHECK(index.Find({.parent = second, .policy_version = 1, .token_ids = tokens}) == -1);
  CHECK(index.Find({.policy_version = 2, .token_ids = tokens}) == -1);
  CHECK(index.Find({.policy_version = 1, .token_ids = others}) == -1);
}

TEST_CASE("a second page of the same block stays unknown and continues the first one's prefix") {
  PrefixIndex index(8, 2, HashBlock);
  const std::vector<int32_t> tokens = {4, 5};
  const PrefixId first = index.Insert(3, {.token_ids = tokens});
  CHECK(index.Insert(4, {.token_ids = tokens}) == first);
  CHECK(index.id(4) == kNoPrefix);
  CHECK(index.Find({.token_ids = tokens}) == 3);
  CHECK(index.num_known() == 1);
}

TEST_CASE("blocks whose hashes collide are not mixed, and the second is not indexed") {
  PrefixIndex index(8, 2, AlwaysSeven);
  const std::vector<int32_t> tokens = {4, 5};
  const std::vector<int32_t> others = {4, 6};
  const PrefixId first = index.Insert(3, {.policy_version = 1, .token_ids = tokens});
  CHECK(index.Insert(4, {.policy_version = 1, .token_ids = others}) == kNoPrefix);
  CHECK(index.Insert(4, {.policy_version = 2, .token_ids = tokens}) == kNoPrefix);
  CHECK(index.Insert(4, {.parent = first, .policy_version = 1, .token_ids = tokens}) == kNoPrefix);
  CHECK(index.Find({.policy_version = 1, .token_ids = others}) == -1);
  CHECK(index.Find({.policy_version = 2, .token_ids = tokens}) == -1);
  CHECK(index.Find({.parent = first, .policy_version = 1, .token_ids = tokens}) == -1);
  CHECK(index.Find({.policy_version = 1, .token_ids = tokens}) == 3);
}

TEST_CASE("what is erased is not found, and its name is never given again") {
  PrefixIndex index(8, 2, HashBlock);
  const std::vector<int32_t> tokens = {4, 5};
  const PrefixId first = index.Insert(3, {.token_ids = tokens});
  index.Erase(3);
  index.Erase(3);
  CHECK(index.Find({.token_ids = tokens}) == -1);
  const PrefixId again = index.Insert(3, {.token_ids = tokens});
  CHECK(again != first);
  index.Clear();
  CHECK(index.num_known() == 0);
  CHECK(index.Find({.token_ids = tokens}) == -1);
  CHECK(index.Insert(3, {.token_ids = tokens}) > again);
}

TEST_CASE("the hash depends on every token, their order, the parent and the version") {
  const std::vector<std::vector<int32_t>> blocks = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {151935, 0}, {0, 151935}};
  std::set<uint64_t> hashes;
  for (const auto& block : blocks) {
    for (const PrefixId parent : {0, 1, 2}) {
      for (const uint64_t version : {0, 1, 2}) {
        hashes.insert(HashBlock({.parent = parent, .policy_version = version, .token_ids = block}));
      }
    }
  }
  CHECK(hashes.size() == 6 * 3 * 3);
}

}  // namespace warpsmith::paged
