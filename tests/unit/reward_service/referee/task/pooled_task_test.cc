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
