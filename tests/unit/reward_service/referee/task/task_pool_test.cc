#include "reward_service/referee/task/task_pool.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/puppet_task.h"
#include "tests/unit/reward_service/referee/task/task_making.h"

namespace warpsmith {
namespace {

constexpr int kTimingDraws = TimingDraws(1);
constexpr int kFreshDraws = FreshDrawsWanted(1);

const Lane& TestLane() {
  static const Lane lane({static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1}, false);
  return lane;
}

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

TaskSource Chain(int addend) {
  return SmallTask("pass", "return torch.relu(x) + " + std::to_string(addend), "[torch.randn(64, 64)]");
}

// One judgement's use of the pool; the inputs of its draws of the task's own kind.
std::set<std::string> Judge(TaskPool& pool, const TaskSource& source, bool another_follows = true) {
  const auto pooled = pool.Begin(source, std::nullopt, another_follows, Soon());
  REQUIRE(pooled.ok());
  const PreparedTask& task = *pooled.value()->task;
  REQUIRE(pool.AwaitCompleted(*pooled, Soon()).ok());
  std::set<std::string> inputs;
  for (const auto* list : {&task.verification_draws(), &task.timing_draws()}) {
    for (const Draw* draw : *list)
      inputs.emplace(draw->inputs.get(), static_cast<size_t>(task.layout().input_buffer_bytes));
    for (const Draw* draw : *list) draw->shown = true;
  }
  pool.End(*pooled);
  return inputs;
}

TEST_CASE("each judgement of a task sees draws that no former one has seen") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  std::set<std::string> seen = Judge(pool, Chain(1));
  for (int i = 0; i < 3; ++i) {
    const std::set<std::string> now = Judge(pool, Chain(1), /*another_follows=*/i % 2 == 0);
    int num_new = 0;
    for (const std::string& inputs : now) num_new += seen.insert(inputs).second ? 1 : 0;
    CHECK(num_new >= 4);
  }
}

TEST_CASE("judgements of one task come one after the other, each with draws of its own") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  std::atomic<int> num_at_once = 0, num_wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      // Each believes to be the last.
      const auto pooled = pool.Begin(Chain(2), std::nullopt, /*another_follows=*/false, Soon());
      if (!pooled.ok() || ++num_at_once > 1 || !pool.AwaitCompleted(*pooled, Soon()).ok()) ++num_wrong;
      absl::SleepFor(absl::Milliseconds(20));
      --num_at_once;
      if (pooled.ok()) pool.End(*pooled);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("draws that no jail of a judgement had are the next one's") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  std::set<const Draw*> former;
  for (int i = 0; i < 3; ++i) {
    const auto pooled = pool.Begin(Chain(3), std::nullopt, /*another_follows=*/false, Soon());
    REQUIRE(pooled.ok());
    REQUIRE(pool.AwaitCompleted(*pooled, Soon()).ok());
    const std::vector<const Draw*>& draws = (*pooled)->task->timing_draws();
    REQUIRE(draws.size() == kTimingDraws);
    int num_kept = 0;
    for (int k = 1; k <= kFreshDraws; ++k) {
      CHECK_FALSE(draws[static_cast<size_t>(k)]->shown);
      num_kept += former.count(draws[static_cast<size_t>(k)]) > 0 ? 1 : 0;
    }
    CHECK(num_kept == (i == 0 ? 0 : kFreshDraws - 2));
    former = {draws.begin() + 1, draws.begin() + 1 + kFreshDraws};
    for (int k = 1; k <= 2; ++k) {
      draws[static_cast<size_t>(k)]->shown = true;
      former.erase(draws[static_cast<size_t>(k)]);
    }
    pool.End(*pooled);
  }
}

TEST_CASE("judgements that show nothing leave no more draws than one can have") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  for (int i = 0; i < 4; ++i) {
    const auto pooled = pool.Begin(Chain(4), std::nullopt, /*another_follows=*/i == 0, Soon());
    REQUIRE(pooled.ok());
    REQUIRE(pool.AwaitCompleted(*pooled, Soon()).ok());
    CHECK((*pooled)->task->timing_draws().size() == kTimingDraws);
    REQUIRE(pool.GetExamined(Chain(10 + i), Soon()).ok());  // by then those for the next are made
    pool.End(*pooled);
  }
}

TEST_CASE("who wants what does not depend on draws uses none up") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  const auto examined = pool.GetExamined(Chain(2), Soon());
  REQUIRE(examined.ok());
  const std::set<std::string> first = Judge(pool, Chain(2));
  const std::vector<const Draw*> draws = examined.value()->task->verification_draws();
  REQUIRE(pool.GetExamined(Chain(2), Soon()).ok());
  CHECK(examined.value()->task->verification_draws() == draws);
}

TEST_CASE("tasks get fresh draws though there are more of them than oracles") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 16);
  for (int round = 0; round < 3; ++round) {
    for (int task = 0; task < 6; ++task) CHECK(Judge(pool, Chain(task)).size() > 8);
  }
}

TEST_CASE(
    "who waits for a task gives up in time, whatever its oracle does, and is told later that it does not "
    "end") {
  const auto zygote = StartPuppets({{"answers", {{"load", "silent"}}}});
  TaskLimits limits = PuppetTaskLimits();
  limits.step_time_max = absl::Milliseconds(500);
  TaskPool pool(limits, zygote.get(), &PuppetLane(), PuppetPlace(zygote.get()), 8);
  const TaskSource source = PuppetTaskSource();
  CHECK(absl::IsDeadlineExceeded(pool.Begin(source, std::nullopt, false, absl::Now()).status()));
  CHECK(absl::IsDeadlineExceeded(pool.GetExamined(source, absl::Now()).status()));
  CHECK(pool.Begin(source, std::nullopt, false, Soon()).status() ==
        absl::InvalidArgumentError("the reference does not end in 500ms or 60 s of CPU time"));
}

// A device whose memory others have, until they give it back.
class FullAtFirst : public TaskOnDevice {
 public:
  FullAtFirst(std::unique_ptr<TaskOnDevice> other, const std::atomic<bool>* full)
      : other_(std::move(other)), full_(full) {}
  absl::Status StartReference(const PreparedTask& task) override {
    if (*full_) return absl::ResourceExhaustedError("the GPU has no memory");
    return other_->StartReference(task);
  }
  absl::Status WarmReference(const PreparedTask& task, absl::Time deadline) override {
    return other_->WarmReference(task, deadline);
  }

 private:
  const std::unique_ptr<TaskOnDevice> other_;
  const std::atomic<bool>* const full_;
};

TEST_CASE("what the machine lacked once is no fault of a task, which is made anew for the next use") {
  std::atomic<bool> full = true;
  const auto zygote = StartPuppets();
  const PlaceTask host = PuppetPlace(zygote.get());
  TaskPool pool(
      PuppetTaskLimits(), zygote.get(), &PuppetLane(),
      [&] { return std::make_unique<FullAtFirst>(host(), &full); }, 8);
  const auto complete = [&]() -> absl::Status {
    const auto begun = pool.Begin(PuppetTaskSource(), std::nullopt, false, Soon());
    if (!begun.ok()) return begun.status();
    const absl::Status status = pool.AwaitCompleted(*begun, Soon());
    pool.End(*begun);
    return status;
  };
  CHECK(absl::IsResourceExhausted(complete()));
  full = false;
  CHECK(complete().ok());
}

TEST_CASE("a task at fault is told at every use") {
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), TestPlace(), 8);
  const TaskSource source = SmallTask("pass", "return x * 0", "[torch.randn(64, 64)]");
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = pool.Begin(source, std::nullopt, false, Soon()).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("zeros"));
  }
}

}  // namespace
}  // namespace warpsmith
