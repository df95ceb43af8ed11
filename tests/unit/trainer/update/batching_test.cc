#include "trainer/update/batching.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("ranks get nearly equal tokens and every sequence goes to one rank") {
  // 90 to rank 0; 80 to rank 1; 50 to rank 1 (130); 50 to rank 0 (140); 20 to rank 1 (150); 10 to rank 0
  // (150).
  const auto ranks = AssignToRanks({10, 90, 20, 80, 50, 50}, 2);
  CHECK(ranks[0] == SequenceIndices{0, 1, 5});
  CHECK(ranks[1] == SequenceIndices{2, 3, 4});
}

TEST_CASE("more ranks than sequences leaves some ranks empty") {
  const auto ranks = AssignToRanks({5}, 3);
  CHECK(ranks[0] == SequenceIndices{0});
  CHECK(ranks[1].empty());
}

TEST_CASE("micro-batches keep the order and the limit, and a long sequence stands alone") {
  const std::vector<int64_t> lengths = {4, 4, 9, 1, 7, 20, 2};
  const auto batches = PackMicroBatches(lengths, {0, 1, 2, 3, 4, 5, 6}, 10);
  CHECK(batches == std::vector<SequenceIndices>{{0, 1}, {2, 3}, {4}, {5}, {6}});
  CHECK(PackMicroBatches(lengths, {}, 10).empty());
}

TEST_CASE("parts of a split differ by at most one and none is empty") {
  CHECK(SplitEvenly(5, 2) == std::vector<SequenceIndices>{{0, 1, 2}, {3, 4}});
  CHECK(SplitEvenly(2, 4) == std::vector<SequenceIndices>{{0}, {1}});
  CHECK(SplitEvenly(0, 4).empty());
}

}  // namespace warpsmith
