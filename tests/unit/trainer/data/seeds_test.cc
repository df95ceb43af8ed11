#include "trainer/data/seeds.h"

#include <set>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("seeds of different runs, purposes and indices differ") {
  std::set<uint64_t> seeds;
  for (uint64_t run = 0; run < 3; ++run) {
    for (const SeedPurpose purpose :
         {SeedPurpose::kRollout, SeedPurpose::kTaskOrder, SeedPurpose::kEvaluation}) {
      for (uint64_t index = 0; index < 100; ++index) seeds.insert(DeriveSeed(run, purpose, index));
    }
  }
  CHECK(seeds.size() == 900);
}

TEST_CASE("the hash of a name is FNV-1a") {
  CHECK(HashOf("") == 0xcbf29ce484222325u);
  CHECK(HashOf("a") == 0xaf63dc4c8601ec8cu);
}

}  // namespace warpsmith
