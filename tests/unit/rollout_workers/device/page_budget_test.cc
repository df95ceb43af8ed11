#include "rollout_workers/device/page_budget.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith::device {
namespace {

// A GPU of 1,000 pages' size: others hold 100, weights and buffers will take 200.
PageBudget Budget(double memory_share) {
  constexpr int64_t kPageBytes = int64_t{1} << 20;
  return {.total_bytes = 1000 * kPageBytes,
          .free_bytes = 900 * kPageBytes,
          .fixed_bytes = 200 * kPageBytes,
          .memory_share = memory_share,
          .page_bytes = kPageBytes,
          .pages_of_context = 100,
          .pages_useful = 10'000};
}

}  // namespace

TEST_CASE("pages take what the share leaves beside everything else") {
  CHECK(PagesWithinShare(Budget(1)).value() == 700);
  CHECK(PagesWithinShare(Budget(0.875)).value() == 575);
  CHECK(PagesWithinShare(Budget(0.5)).value() == 200);
}

TEST_CASE("no more pages are taken than sequences can use, and the padding page") {
  PageBudget budget = Budget(1);
  budget.pages_useful = 250;
  CHECK(PagesWithinShare(budget).value() == 251);
  budget.pages_useful = 10;
  CHECK(PagesWithinShare(budget).value() == 101);
}

TEST_CASE("memory that does not hold one context is refused with the values and the ways out") {
  for (const double share : {0.40, 0.25, 0.01}) {
    const absl::Status status = PagesWithinShare(Budget(share)).status();
    CHECK(absl::IsResourceExhausted(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("0.98 GiB") && Catch::Contains("0.68") &&
                                                  Catch::Contains("raise the memory share"));
  }
  CHECK(PagesWithinShare(Budget(0.402)).ok());
}

}  // namespace warpsmith::device
