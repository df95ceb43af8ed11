#include "rollout_workers/scheduler.h"

#include <utility>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// (group, samples) of each admission.
std::vector<std::pair<int, int>> Plan(const std::vector<WaitingGroup>& waiting, int num_free_slots,
                                      int prefill_tokens_max) {
  std::vector<std::pair<int, int>> plan;
  for (const Admission& admission :
       PlanAdmissions(waiting, num_free_slots, {.prefill_tokens_max = prefill_tokens_max})) {
    plan.emplace_back(static_cast<int>(admission.group), admission.num_samples);
  }
  return plan;
}

using Pairs = std::vector<std::pair<int, int>>;
constexpr WaitingGroup kGroup = {.num_prompt_tokens = 100, .num_waiting = 8};

}  // namespace

TEST_CASE("groups are admitted in order until the slots are full, the last one in part") {
  CHECK(Plan({kGroup, kGroup, kGroup}, 20, 1000) == Pairs{{0, 8}, {1, 8}, {2, 4}});
}

TEST_CASE("nothing is admitted without a free slot or without a group") {
  CHECK(Plan({kGroup}, 0, 1000).empty());
  CHECK(Plan({}, 8, 1000).empty());
}

TEST_CASE("a step prefills no more prompt tokens than its limit") {
  CHECK(Plan({kGroup, kGroup, kGroup}, 64, 200) == Pairs{{0, 8}, {1, 8}});
  CHECK(Plan({kGroup, kGroup, kGroup}, 64, 199) == Pairs{{0, 8}});
}

TEST_CASE("a prompt longer than the limit is admitted alone rather than never") {
  CHECK(Plan({{.num_prompt_tokens = 5000, .num_waiting = 2}, kGroup}, 64, 200) == Pairs{{0, 2}});
}

TEST_CASE("a long prompt is not overtaken by a short one behind it") {
  CHECK(Plan({kGroup, {.num_prompt_tokens = 5000, .num_waiting = 2}, kGroup}, 64, 300) == Pairs{{0, 8}});
}

TEST_CASE("samples whose prompt is resident cost no prefill") {
  const WaitingGroup resident = {.num_prompt_tokens = 5000, .num_waiting = 3, .prompt_resident = true};
  CHECK(Plan({resident, kGroup}, 64, 100) == Pairs{{0, 3}, {1, 8}});
}

TEST_CASE("a group that waits for nothing takes no slot") {
  CHECK(Plan({{.num_prompt_tokens = 10, .num_waiting = 0}, kGroup}, 8, 1000) == Pairs{{1, 8}});
}

}  // namespace warpsmith
