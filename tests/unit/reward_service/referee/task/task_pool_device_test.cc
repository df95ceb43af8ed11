#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reward_service/referee/task/task_pool.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr int kTimingDraws = TimingDraws(1);
constexpr int kFreshDraws = FreshDrawsWanted(1);

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

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

// Judges candidates of tasks that have numbers, in a pool with memory for two of them.
class HeavyTasks {
 public:
  explicit HeavyTasks(DeviceTurn* turn)
      : pool_(
            PuppetTaskLimits(), zygote_.get(), &PuppetLane(),
            [this, turn] { return std::make_unique<Heavy>(host_(), turn); }, 8, /*device_bytes_max=*/250) {}

  std::weak_ptr<PooledTask> Judge(int task, bool is_right) {
    const TaskSource source = {"task " + std::to_string(task), "class Model: pass"};
    const auto begun = pool_.Begin(source, std::nullopt, /*another_follows=*/true, Soon());
    REQUIRE(begun.ok());
    if (is_right) REQUIRE(pool_.AwaitCompleted(*begun, Soon()).ok());
    pool_.End(*begun);
    return *begun;
  }

 private:
  const std::unique_ptr<Zygote> zygote_ = StartPuppets();
  const PlaceTask host_ = PuppetPlace(zygote_.get());
  TaskPool pool_;
};

TEST_CASE("as many tasks are kept as a device has memory for, those that were used last") {
  HeavyTasks tasks(/*turn=*/nullptr);
  const auto first = tasks.Judge(1, true), second = tasks.Judge(2, true);
  const auto third = tasks.Judge(3, true);
  CHECK(ExpiresSoon(first));
  CHECK_FALSE(second.expired());
  CHECK_FALSE(third.expired());
}

TEST_CASE("where a device is one for all, the memory that timing needs is counted once somebody is right") {
  DeviceTurn turn;
  HeavyTasks tasks(&turn);
  std::vector<std::weak_ptr<PooledTask>> judged;
  for (const int task : {1, 1, 2, 2, 3, 3}) judged.push_back(tasks.Judge(task, false));
  for (const auto& task : judged) CHECK_FALSE(task.expired());
  for (const int task : {1, 2, 3}) tasks.Judge(task, true);
  CHECK(ExpiresSoon(judged[0]));
  CHECK_FALSE(judged[2].expired());
  CHECK_FALSE(judged[4].expired());
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

}  // namespace
}  // namespace warpsmith
