#include "rollout_workers/device/step_buckets.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace warpsmith::device {

TEST_CASE("decode buckets ascend to the number of sequences, whatever it is") {
  CHECK(DecodeBuckets(1) == std::vector<int>{1});
  CHECK(DecodeBuckets(2) == std::vector<int>{1, 2});
  CHECK(DecodeBuckets(3) == std::vector<int>{1, 2, 3});
  CHECK(DecodeBuckets(20) == std::vector<int>{1, 2, 4, 8, 16, 20});
  CHECK(DecodeBuckets(24) == std::vector<int>{1, 2, 4, 8, 16, 24});
  CHECK(DecodeBuckets(512).size() == 31);
  for (int sequences = 1; sequences <= 4096; ++sequences) {
    const std::vector<int> buckets = DecodeBuckets(sequences);
    REQUIRE(std::adjacent_find(buckets.begin(), buckets.end(), std::greater_equal<>()) == buckets.end());
    REQUIRE(buckets.back() == sequences);
  }
}

TEST_CASE("batch-invariant products share one bucket") {
  CHECK(RowBuckets({1, 2, 4}, 2050, true) == std::vector<int64_t>{2050});
}

TEST_CASE("other products have a bucket a decode bucket, and powers of two behind them") {
  CHECK(RowBuckets({1, 2, 3}, 35, false) == std::vector<int64_t>{1, 2, 3, 4, 8, 16, 32, 35});
  CHECK(RowBuckets({1, 2, 4, 8}, 16, false) == std::vector<int64_t>{1, 2, 4, 8, 16});
  CHECK(RowBuckets({}, 4, false) == std::vector<int64_t>{1, 2, 4});
  CHECK(RowBuckets({1}, 1, false) == std::vector<int64_t>{1});
}

}  // namespace warpsmith::device
