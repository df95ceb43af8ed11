#include "reward_service/referee/task/task_pool.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"
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
        absl::InvalidArgumentError("the reference does not end"));
}

// Behaves as another, and says that a task of it holds much of a device's memory when it is examined and timed.
class Heavy : public TaskOnDevice {
 public:
  explicit Heavy(std::unique_ptr<TaskOnDevice> other, DeviceTurn* turn = nullptr)
      : other_(std::move(other)), turn_(turn) {}
  DeviceTurn* turn() const override { return turn_; }
  int64_t BytesOf(const TaskLayout& layout, int64_t num_draws, TaskUse use) const override {
    if (use == TaskUse::kVerifying) return 1;
    CHECK(num_draws >= kTimingDraws + kFreshDraws);
    return layout.inputs.empty() ? 1 : 100;
  }
  absl::Status StartReference(const PreparedTask& task) override { return other_->StartReference(task); }
  absl::Status WarmReference(const PreparedTask& task, absl::Time deadline) override {
    return other_->WarmReference(task, deadline);
  }

 private:
  const std::unique_ptr<TaskOnDevice> other_;
  DeviceTurn* const turn_;
};

bool ExpiresSoon(const std::weak_ptr<PooledTask>& task) {
  const absl::Time deadline = Soon();  // they are freed by the threads that make tasks
  while (!task.expired() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  return task.expired();
}

TEST_CASE("as many tasks are kept as a device has memory for, those that were used last") {
  const auto place = [] { return std::make_unique<Heavy>(TestPlace()()); };
  TaskPool pool(TestLimits(), &TestZygote(), &TestLane(), place, 8, /*device_bytes_max=*/250);
  std::vector<std::weak_ptr<PooledTask>> tasks;
  for (int i = 0; i < 2; ++i) {
    Judge(pool, Chain(i));
    tasks.push_back(*pool.GetExamined(Chain(i), Soon()));
  }
  Judge(pool, Chain(2));  // which is light until it is examined
  CHECK(ExpiresSoon(tasks[0]));
  CHECK_FALSE(tasks[1].expired());
}

TEST_CASE("where a device is one for all, the memory that timing needs is counted once somebody is right") {
  DeviceTurn turn;
  const auto zygote = StartPuppets();
  const PlaceTask host = PuppetPlace(zygote.get());
  const auto place = [&] { return std::make_unique<Heavy>(host(), &turn); };
  TaskPool pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), place, 8, /*device_bytes_max=*/250);
  std::vector<std::weak_ptr<PooledTask>> tasks;
  const auto judge = [&](int which, bool is_right) {
    const TaskSource source = {"task " + std::to_string(which), "class Model: pass"};
    const auto begun = pool.Begin(source, std::nullopt, /*another_follows=*/true, Soon());
    REQUIRE(begun.ok());
    if (is_right) REQUIRE(pool.AwaitCompleted(*begun, Soon()).ok());
    tasks.emplace_back(*begun);
    pool.End(*begun);
  };
  for (int which = 0; which < 3; ++which) {
    for (int judgement = 0; judgement < 2; ++judgement) judge(which, /*is_right=*/false);
  }
  for (const auto& task : tasks) CHECK_FALSE(task.expired());
  for (int which = 0; which < 3; ++which) judge(which, /*is_right=*/true);
  CHECK(ExpiresSoon(tasks[0]));
  for (int which = 1; which < 3; ++which) CHECK_FALSE(tasks[2 * which].expired());
}

TEST_CASE("whoever is alone ends the processes of all tasks, those too that wait to be freed") {
  DeviceTurn turn;
  FakeMachine machine;
  machine.turn = &turn;
  const auto zygote = StartPuppets();
  TaskPool pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 1);
  REQUIRE(pool.GetExamined(PuppetTaskSource(), Soon()).ok());
  const auto in_hand = pool.GetExamined({"other", "class Model: pass"}, Soon());
  REQUIRE(in_hand.ok());
  const auto alone = HoldTurn(&turn, DeviceTurn::Kind::kAlone);
  pool.Prefetch({"a third", "class Model: pass"});
  absl::SleepFor(absl::Milliseconds(200));  // in which its step begins, and frees what it can
  machine.num_references_ended = 0;
  pool.EndOracles();
  // Of the one in hand and of the third; the first may be freed before.
  CHECK(machine.num_references_ended >= 2);
  pool.MakeRoom();  // nothing of it ends without a turn
  machine.num_references_ended = 0;
  pool.EndOracles();
  CHECK(machine.num_references_ended >= 2);
}

// On a device that is one for all. Counts those that there are, and where it is asked to the references.
class Counted : public TaskOnDevice {
 public:
  Counted(std::unique_ptr<TaskOnDevice> other, std::atomic<int>* number,
          std::atomic<int>* num_references = nullptr)
      : other_(std::move(other)), number_(number), num_references_(num_references) {
    ++*number_;
  }
  ~Counted() override { --*number_; }
  DeviceTurn* turn() const override { return &turn_; }
  absl::Status StartReference(const PreparedTask& task) override {
    if (num_references_ != nullptr) ++*num_references_;
    return other_->StartReference(task);
  }
  absl::Status WarmReference(const PreparedTask& task, absl::Time deadline) override {
    return other_->WarmReference(task, deadline);
  }

 private:
  const std::unique_ptr<TaskOnDevice> other_;
  std::atomic<int>* const number_;
  std::atomic<int>* const num_references_;
  mutable DeviceTurn turn_;
};

TEST_CASE("where a device is one for all, what timing needs is made once, when somebody is right") {
  std::atomic<int> number = 0, num_references = 0;
  const auto zygote = StartPuppets();
  const PlaceTask host = PuppetPlace(zygote.get());
  TaskPool pool(
      PuppetTaskLimits(), zygote.get(), &PuppetLane(),
      [&] { return std::make_unique<Counted>(host(), &number, &num_references); }, 8);
  // Another task's step comes behind those of the first.
  const auto make_another = [&](int which) {
    REQUIRE(pool.GetExamined({"other " + std::to_string(which), "class Model: pass"}, Soon()).ok());
  };
  for (int judgement = 0; judgement < 5; ++judgement) {
    const bool is_right = judgement >= 2;
    const auto begun = pool.Begin(PuppetTaskSource(), std::nullopt, /*another_follows=*/true, Soon());
    REQUIRE(begun.ok());
    const PreparedTask& task = *(*begun)->task;
    // To verify a candidate one is enough.
    CHECK(task.num_own_draws() == (judgement == 0 ? 0 : 1));
    make_another(judgement);
    CHECK((*begun)->completed == (judgement > 2));
    CHECK(num_references == (judgement > 2 ? 1 : 0));
    if (is_right) {
      if (judgement % 2 == 0) pool.WantCompleted(*begun);
      REQUIRE(pool.AwaitCompleted(*begun, Soon()).ok());
      REQUIRE(pool.AwaitCompleted(*begun, Soon()).ok());  // it is timed once more
      CHECK(task.num_own_draws() == kFreshDraws);
      CHECK(task.timing_draws().size() == kTimingDraws);
      CHECK(num_references == 1);
    }
    pool.End(*begun);
  }
}

TEST_CASE(
    "where a device is one for all, a lone candidate that is wrong costs no draw but those it is shown") {
  std::atomic<int> number = 0;
  const auto zygote = StartPuppets();
  const PlaceTask host = PuppetPlace(zygote.get());
  TaskPool pool(
      PuppetTaskLimits(), zygote.get(), &PuppetLane(),
      [&] { return std::make_unique<Counted>(host(), &number); }, 8);
  pool.Prefetch(PuppetTaskSource());
  const auto begun = pool.Begin(PuppetTaskSource(), std::nullopt, /*another_follows=*/false, Soon());
  REQUIRE(begun.ok());
  REQUIRE(pool.GetExamined({"other", "class Model: pass"}, Soon()).ok());
  CHECK((*begun)->fresh.empty());
  CHECK_FALSE((*begun)->completed);
  CHECK(pool.AwaitCompleted(*begun, Soon()).ok());
  CHECK((*begun)->task->timing_draws().size() == kTimingDraws);
  pool.End(*begun);
}

// On a device whose turn is given; says when a reference starts.
class Watched : public TaskOnDevice {
 public:
  Watched(DeviceTurn* turn, std::function<void()> on_reference)
      : turn_(turn), on_reference_(std::move(on_reference)) {}
  DeviceTurn* turn() const override { return turn_; }
  absl::Status StartReference(const PreparedTask&) override {
    on_reference_();
    return absl::OkStatus();
  }
  absl::Status WarmReference(const PreparedTask&, absl::Time) override { return absl::OkStatus(); }

 private:
  DeviceTurn* const turn_;
  const std::function<void()> on_reference_;
};

TEST_CASE("steps that somebody waits for come before those of a task that came meanwhile") {
  const auto zygote = StartPuppets();
  DeviceTurn turn, turn_of_other;
  std::vector<DeviceTurn*> turns = {&turn_of_other, &turn};
  TaskPool* made = nullptr;
  const auto place = [&] {
    DeviceTurn* const own = turns.back();
    turns.pop_back();
    return std::make_unique<Watched>(own, [&] { made->Prefetch({"other", "class Model: pass"}); });
  };
  TaskPool pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), place, 8,
                std::numeric_limits<int64_t>::max(), /*num_threads=*/1);
  made = &pool;
  // Whoever makes the other task cannot go on.
  const auto held = HoldTurn(&turn_of_other, DeviceTurn::Kind::kAlone);
  const auto begun = pool.Begin(PuppetTaskSource(), std::nullopt, /*another_follows=*/false, Soon());
  REQUIRE(begun.ok());
  CHECK(pool.AwaitCompleted(*begun, absl::Now() + absl::Seconds(20)).ok());
  CHECK(turns.empty());
  pool.End(*begun);
}

TEST_CASE("a task at fault keeps nothing but its fault") {
  std::atomic<int> number = 0;
  const auto zygote = StartPuppets({{"answers", {{"load", {{"op", "failed"}, {"error", "no Model"}}}}}});
  const PlaceTask host = PuppetPlace(zygote.get());
  TaskPool pool(
      PuppetTaskLimits(), zygote.get(), &PuppetLane(),
      [&] { return std::make_unique<Counted>(host(), &number); }, 8);
  const auto fault = absl::InvalidArgumentError("no Model");
  CHECK(pool.GetExamined(PuppetTaskSource(), Soon()).status() == fault);
  // By the thread that has found it.
  const absl::Time deadline = Soon();
  while (number > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  CHECK(number == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(pool.Begin(PuppetTaskSource(), std::nullopt, false, Soon()).status() == fault);
    pool.Prefetch(PuppetTaskSource());
  }
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
