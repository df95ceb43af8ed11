#include "reward_service/referee/task/pooled_task.h"

#include <deque>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

TEST_CASE("what the machine lacked is no task's fault") {
  PooledTask pooled;
  CHECK_FALSE(MachineFailed(pooled));
  pooled.status = TaskAtFault("it returns no tensor");
  CHECK_FALSE(MachineFailed(pooled));
  pooled.status = absl::ResourceExhaustedError("no memory");
  CHECK(MachineFailed(pooled));
}

TEST_CASE("a task that is not examined wants that first") { CHECK(WantsStep(PooledTask())); }

TEST_CASE("draws are made for the present judgement first, and for the next as many as it is sure to need") {
  DeviceTurn turn;
  FakeMachine machine;
  machine.turn = &turn;
  machine.num_batched_calls = 4;
  const auto zygote = StartPuppets();
  PooledTask pooled;
  pooled.task = std::make_unique<PreparedTask>(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1,
                                               PlacesOf(&machine));
  pooled.examined = true;
  const auto to_make = [&](size_t num_had) {
    pooled.fresh.resize(num_had);
    return NumFreshToMake(pooled);
  };
  constexpr size_t kOfJudgement = FreshDrawsWanted(4);
  CHECK(to_make(0) == 0);
  CHECK_FALSE(WantsStep(pooled));
  pooled.wants_fresh = true;
  CHECK(to_make(0) == 4);
  CHECK(to_make(3) == 1);
  CHECK(to_make(4) == 0);
  pooled.completed = true;  // somebody was right
  CHECK(to_make(4) == kOfJudgement - 4);
  pooled.is_judged = true;
  CHECK(to_make(4) == kOfJudgement - 4);
  CHECK(to_make(kOfJudgement) == kOfJudgement);
  CHECK(to_make(2 * kOfJudgement) == 0);
  pooled.wants_fresh = false;
  CHECK(to_make(kOfJudgement) == 0);
}

TEST_CASE("what is waited for goes first, if it is in the queue, and the others keep their order") {
  const auto a = std::make_shared<PooledTask>(), b = std::make_shared<PooledTask>();
  const auto c = std::make_shared<PooledTask>();
  std::deque<std::shared_ptr<PooledTask>> queue = {a, b};
  GoFirst(b, &queue);
  CHECK(queue == std::deque<std::shared_ptr<PooledTask>>{b, a});
  GoFirst(c, &queue);
  CHECK(queue == std::deque<std::shared_ptr<PooledTask>>{b, a});
}

}  // namespace
}  // namespace warpsmith
