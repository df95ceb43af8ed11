#include "reward_service/referee/task/pooled_task.h"

#include <deque>
#include <memory>

#include "tests/support/catch.h"

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

TEST_CASE("judgements of a task are the one that runs and those that wait") {
  PooledTask pooled;
  CHECK(NumJudgements(pooled) == 0);
  pooled.is_judged = true;
  pooled.num_waiting = 2;
  CHECK(NumJudgements(pooled) == 3);
}

TEST_CASE("a copy of a task has no room where it would drive out what was used lately") {
  const absl::Time now = absl::Now();
  PooledTasks tasks;
  const auto add = [&](const char* key, int64_t bytes, absl::Duration ago) {
    tasks[key] = std::make_shared<PooledTask>();
    tasks[key]->device_bytes = bytes;
    tasks[key]->last_used_at = now - ago;
  };
  add("task", 40, absl::ZeroDuration());
  CHECK(HasRoomForCopy(tasks, *tasks["task"], 80, now));
  add("former", 30, absl::Minutes(1));
  CHECK(HasRoomForCopy(tasks, *tasks["task"], 80, now));
  add("beside it", 1, absl::Seconds(2));
  CHECK_FALSE(HasRoomForCopy(tasks, *tasks["task"], 80, now));
}

TEST_CASE("a task that is not examined wants that first") { CHECK(WantsStep(PooledTask())); }

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
