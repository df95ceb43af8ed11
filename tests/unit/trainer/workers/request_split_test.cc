#include "trainer/workers/request_split.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Tasks = std::vector<int>;

TEST_CASE("a request within the limit is one part, spread evenly over the workers") {
  RequestSplit split(/*num_tasks=*/5, /*tasks_max=*/3);
  const auto shares = split.Share({0, 1, 2, 3, 4}, {0, 1});
  REQUIRE(shares.size() == 2);
  REQUIRE(shares[0].size() == 1);
  CHECK(shares[0][0].tasks == Tasks{0, 2, 4});
  REQUIRE(shares[1].size() == 1);
  CHECK(shares[1][0].tasks == Tasks{1, 3});
}

TEST_CASE("a share over the limit is several parts in the order of the tasks") {
  RequestSplit split(/*num_tasks=*/5, /*tasks_max=*/2);
  const auto shares = split.Share({0, 1, 2, 3, 4}, {7});
  REQUIRE(shares.size() == 1);
  REQUIRE(shares[0].size() == 3);
  CHECK(shares[0][0].tasks == Tasks{0, 1});
  CHECK(shares[0][1].tasks == Tasks{2, 3});
  CHECK(shares[0][2].tasks == Tasks{4});
  CHECK(shares[0][2].number == 2);
}

TEST_CASE("a task that is asked for again stays in its part") {
  RequestSplit split(/*num_tasks=*/5, /*tasks_max=*/2);
  split.Share({0, 1, 2, 3, 4}, {0});
  const auto shares = split.Share({1, 4}, {0});
  REQUIRE(shares[0].size() == 2);
  CHECK(shares[0][0].number == 0);
  CHECK(shares[0][0].tasks == Tasks{1});
  CHECK(shares[0][1].number == 2);
  CHECK(shares[0][1].tasks == Tasks{4});
}

TEST_CASE("the tasks of a lost worker go to the others, in parts of their own") {
  RequestSplit split(/*num_tasks=*/4, /*tasks_max=*/2);
  split.Share({0, 1, 2, 3}, {0, 1});
  const auto shares = split.Share({0, 2, 3}, {1});  // 0 and 2 were worker 0's
  REQUIRE(shares[0].size() == 2);
  CHECK(shares[0][0].number == 0);
  CHECK(shares[0][0].tasks == Tasks{3});
  CHECK(shares[0][1].number == 1);
  CHECK(shares[0][1].tasks == Tasks{0, 2});
}

TEST_CASE("no tasks make no parts") {
  RequestSplit split(/*num_tasks=*/0, /*tasks_max=*/1);
  CHECK(split.Share({}, {0})[0].empty());
}

}  // namespace
}  // namespace warpsmith
