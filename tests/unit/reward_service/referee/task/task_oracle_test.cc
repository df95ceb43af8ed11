// Oracles on a device that is one for all: beside others, alone, and where they are ended.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "reward_service/referee/task/prepared_task.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

// A task of puppets on a device that is one for all, where another oracle computes all the time.
struct SharedBench {
  explicit SharedBench(const nlohmann::json& script = nlohmann::json::object())
      : zygote(StartPuppets(script)) {
    machine.turn = &turn;
    task = std::make_unique<PreparedTask>(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1,
                                          PlacesOf(&machine));
  }

  DeviceTurn turn;
  FakeMachine machine;
  const std::unique_ptr<Zygote> zygote;
  std::unique_ptr<PreparedTask> task;
  std::unique_ptr<DeviceTurn::Held> other = HoldTurn(&turn, DeviceTurn::Kind::kShared);
};

TEST_CASE("oracles compute beside each other on a device that is one for all") {
  SharedBench bench;
  REQUIRE(bench.task->Examine().ok());
  REQUIRE(bench.task->Complete().ok());
  CHECK(bench.task->MakeFresh(bench.task->num_fresh_draws()).ok());
}

// What comes of it, where it waits until nobody else has the device.
absl::Status ExamineUntilAlone(SharedBench* bench) {
  absl::Status status = absl::UnknownError("not done");
  absl::Notification done;
  std::thread maker([&] {
    status = bench->task->Examine();
    done.Notify();
  });
  CHECK_FALSE(done.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
  bench->other.reset();
  maker.join();
  return status;
}

TEST_CASE("what fails beside others is no task's fault before it has failed alone") {
  const nlohmann::json failed = {{"op", "failed"}, {"error", "out of memory"}};
  for (const char* op : {"load", "window", "draw large"}) {
    for (const bool fails_alone : {false, true}) {
      nlohmann::json script;
      script["children"]["0"] = {{op, failed}};
      if (fails_alone) script["answers"] = {{op, failed}};
      SharedBench bench(script);
      const absl::Status status = ExamineUntilAlone(&bench);
      CHECK(status == (fails_alone ? absl::InvalidArgumentError("out of memory") : absl::OkStatus()));
      if (!fails_alone)
        CHECK(bench.task->verification_draws().size() == bench.task->construction_draws().size());
    }
  }
}

TEST_CASE(
    "what an oracle finds in good order is the task's fault beside others, too, and costs nobody a turn "
    "alone") {
  const nlohmann::json invalid = {{"op", "invalid"}, {"error", "output 0 cannot be told from zero"}};
  for (const char* op : {"load", "draw large"}) {
    nlohmann::json script;
    script["children"]["0"] = {{op, invalid}};
    SharedBench bench(script);  // in which somebody shares the device all the time
    CHECK(bench.task->Examine() == absl::InvalidArgumentError("output 0 cannot be told from zero"));
  }
}

TEST_CASE(
    "a task whose oracle was ended makes its draws alone, and is at fault where it leaves work behind") {
  for (const bool leaves_work : {false, true}) {
    SharedBench bench;
    REQUIRE(bench.task->Examine().ok());
    bench.other.reset();
    {
      const auto judgement = HoldTurn(&bench.turn, DeviceTurn::Kind::kAlone);
      bench.task->EndProcesses();
    }
    // Idle before each answer, busy after it, and idle once the oracle has gone.
    int num_looks = 0;
    bench.machine.idle = [&]() -> absl::Status {
      return leaves_work && num_looks++ % 3 == 1 ? absl::DeadlineExceededError("busy") : absl::OkStatus();
    };
    const absl::Status status = bench.task->MakeFresh(bench.task->num_fresh_draws()).status();
    if (!leaves_work) CHECK(status.ok());
    if (leaves_work)
      CHECK(status == absl::InvalidArgumentError("the reference leaves work on the GPU behind"));
  }
}

TEST_CASE("a process that does not start beside others is no failure before it does not start alone") {
  const nlohmann::json refused = {{"hello oracle", {{"op", "failed"}, {"error", "no context"}}}};
  for (const bool fails_alone : {false, true}) {
    // The first two are those before the turn and in it; the next two those of the task alone.
    nlohmann::json script;
    for (const char* child : {"0", "1"}) script["children"][child] = refused;
    for (const char* child : {"2", "3"})
      script["children"][child] = fails_alone ? refused : nlohmann::json::object();
    SharedBench bench(script);
    absl::Status status = absl::UnknownError("not done");
    std::thread maker([&] { status = bench.task->Examine(); });
    absl::SleepFor(absl::Milliseconds(200));
    bench.other.reset();
    maker.join();
    CHECK(status.code() == (fails_alone ? absl::StatusCode::kInternal : absl::StatusCode::kOk));
  }
}

TEST_CASE("an oracle that finds no memory on the device has it once those who wait there have ended") {
  const nlohmann::json refused = {
      {"hello oracle", {{"op", "failed"}, {"error", "OSError: CUDA error: out of memory"}}}};
  for (const bool is_kept_for_good : {false, true}) {
    // Before the turn and in it, beside others and alone.
    nlohmann::json script;
    for (const char* child : {"0", "1", "2", "3"}) script["children"][child] = refused;
    if (is_kept_for_good) script["answers"] = refused;
    SharedBench bench(script);
    int num_asked = 0;
    bench.machine.end_waiting = [&] { return ++num_asked > 0; };
    absl::Status status = absl::UnknownError("not done");
    std::thread maker([&] { status = bench.task->Examine(); });
    absl::SleepFor(absl::Milliseconds(200));
    CHECK(num_asked == 0);  // beside others it would take what they have
    bench.other.reset();
    maker.join();
    CHECK(num_asked == 1);
    CHECK(status.code() == (is_kept_for_good ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk));
  }
}

TEST_CASE("tolerances of an oracle for which memory was scarce beside others are found again alone") {
  SharedBench bench;
  bench.machine.was_scarce = true;
  CHECK(ExamineUntilAlone(&bench).ok());
}

TEST_CASE("a fault that an oracle finds while memory is scarce beside others is the task's all the same") {
  nlohmann::json script;
  script["children"]["0"] = {{"load", {{"op", "invalid"}, {"error", "output 0 cannot be told from zero"}}}};
  SharedBench bench(script);
  bench.machine.was_scarce = true;
  CHECK(bench.task->Examine() == absl::InvalidArgumentError("output 0 cannot be told from zero"));
}

TEST_CASE("draws whose tolerances are known already are made beside others, though memory is scarce") {
  SharedBench bench;
  REQUIRE(bench.task->Examine().ok());
  bench.machine.was_scarce = true;
  CHECK(bench.task->MakeFresh(1).ok());
}

TEST_CASE("an oracle that is alone while memory is scarce begins once those who wait there have ended") {
  SharedBench bench;
  bench.machine.has_plenty = false;
  int num_asked = 0;
  bench.machine.end_waiting = [&] { return ++num_asked > 0; };
  REQUIRE(bench.task->Examine().ok());
  CHECK(num_asked == 0);  // beside others
  bench.task->EndProcesses();
  bench.other.reset();
  CHECK(bench.task->MakeFresh(1).ok());
  CHECK(num_asked == 1);
}

TEST_CASE("draws for which there is no memory are made once those who wait on the device have ended") {
  const nlohmann::json lacking = {
      {"draw large", {{"op", "failed"}, {"error", "AcceleratorError: CUDA error: out of memory"}}}};
  for (const bool is_kept_for_good : {false, true}) {
    nlohmann::json script;
    // Beside others, and alone.
    for (const char* child : {"0", "1"}) script["children"][child] = lacking;
    if (is_kept_for_good) script["answers"] = lacking;
    SharedBench bench(script);
    bench.machine.is_crowded = [] { return true; };
    bench.other.reset();
    int num_asked = 0;
    bench.machine.end_waiting = [&] {
      CHECK_FALSE(bench.turn.is_shared());
      return ++num_asked > 0;
    };
    const absl::Status status = bench.task->Examine();
    CHECK(status.code() == (is_kept_for_good ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk));
    CHECK(num_asked == (is_kept_for_good ? 2 : 1));
  }
}

TEST_CASE("a task that failed beside others and not alone shares the device again, with another oracle") {
  nlohmann::json script;
  script["children"]["1"]["draw own"] = {{"op", "failed"}, {"error", "illegal memory access"}};
  SharedBench bench(script);
  REQUIRE(bench.task->Examine().ok());
  REQUIRE(bench.task->Complete().ok());
  bench.task->CloseOracle();
  absl::Status status;
  std::thread maker([&] { status = bench.task->MakeFresh(bench.task->num_fresh_draws()).status(); });
  absl::SleepFor(absl::Milliseconds(300));
  bench.other.reset();
  maker.join();
  CHECK(status.ok());
  bench.other = HoldTurn(&bench.turn, DeviceTurn::Kind::kShared);
  CHECK(bench.task->MakeFresh(bench.task->num_fresh_draws()).ok());  // alone it would wait
}

TEST_CASE("memory that an oracle lacked is the task's fault where others keep little of it") {
  const nlohmann::json failed = {{"op", "failed"}, {"error", "OutOfMemoryError: CUDA out of memory"}};
  for (const bool is_crowded : {false, true}) {
    nlohmann::json script;
    script["answers"]["draw large"] = failed;
    SharedBench bench(script);
    bench.machine.is_crowded = [&] { return is_crowded; };
    bench.other.reset();
    const absl::Status status = bench.task->Examine();
    CHECK(status.code() ==
          (is_crowded ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument));
  }
}

TEST_CASE("memory that an oracle lacked is no task's fault where others keep it until its turn ends") {
  for (const char* op : {"load", "window", "draw large"}) {
    nlohmann::json script;
    script["answers"][op] = {{"op", "failed"}, {"error", "OutOfMemoryError: CUDA out of memory"}};
    SharedBench bench(script);
    bench.other.reset();
    bench.machine.is_crowded = [&] {
      return !DeviceTurn::Take(&bench.turn, DeviceTurn::Kind::kShared, absl::Now()).ok();
    };
    INFO(op);
    CHECK(absl::IsResourceExhausted(bench.task->Examine()));
  }
}

TEST_CASE("a task whose own draws are all that lies on a device lacks what nobody else keeps") {
  for (const bool others_keep_some : {false, true}) {
    nlohmann::json script;  // the first oracle, that of the examination, finds memory
    script["answers"]["draw own"] = {{"op", "failed"}, {"error", "OutOfMemoryError: CUDA out of memory"}};
    script["children"]["0"] = nlohmann::json::object();
    SharedBench bench(script);
    bench.other.reset();
    REQUIRE(bench.task->Examine().ok());
    bench.task->CloseOracle();
    const TaskLayout& layout = bench.task->layout();
    const auto num_draws = static_cast<int64_t>(bench.task->verification_draws().size());
    bench.machine.bytes_taken = num_draws * (layout.buffer_bytes() + layout.margin_bytes);
    if (others_keep_some) ++bench.machine.bytes_taken;
    const absl::Status status = bench.task->Complete();
    INFO(status.ToString());
    CHECK(bench.machine.num_references_ended == (others_keep_some ? 1 : 0));
    CHECK(status.code() ==
          (others_keep_some ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument));
  }
}

TEST_CASE("a task's own draws are its own, too, where its oracle on other inputs lacks memory") {
  int64_t own_bytes = 0;
  {
    SharedBench bench;
    REQUIRE(bench.task->Examine().ok());
    const TaskLayout& layout = bench.task->layout();
    own_bytes = static_cast<int64_t>(bench.task->verification_draws().size()) *
                (layout.buffer_bytes() + layout.margin_bytes);
  }
  for (const bool others_keep_some : {false, true}) {
    nlohmann::json script;
    script["loaded"]["num_other_inputs"] = 1;
    script["answers"]["draw own"] = {{"op", "failed"}, {"error", "OutOfMemoryError: CUDA out of memory"}};
    // The task's own oracle, beside others and then alone.
    for (const char* child : {"0", "2"}) script["children"][child] = nlohmann::json::object();
    SharedBench bench(script);
    bench.other.reset();
    bench.machine.bytes_taken = own_bytes + (others_keep_some ? 1 : 0);
    const absl::Status status = bench.task->Examine();
    INFO(status.ToString());
    CHECK(status.code() ==
          (others_keep_some ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument));
  }
}

TEST_CASE("what others leave to do on a device is not the fault of who asks alone") {
  SharedBench bench;
  REQUIRE(bench.task->Examine().ok());
  bench.other.reset();
  bench.task->EndProcesses();
  bench.machine.idle = [] { return absl::DeadlineExceededError("busy"); };
  CHECK(absl::IsResourceExhausted(bench.task->MakeFresh(bench.task->num_fresh_draws()).status()));
}

TEST_CASE("processes that wait on a device end before an oracle gives up that is alone there") {
  SharedBench bench;
  REQUIRE(bench.task->Examine().ok());
  bench.other.reset();
  bench.task->EndProcesses();
  bool is_busy = true;
  bench.machine.idle = [&] { return is_busy ? absl::DeadlineExceededError("busy") : absl::OkStatus(); };
  bench.machine.end_waiting = [&] { return std::exchange(is_busy, false); };
  CHECK(bench.task->MakeFresh(bench.task->num_fresh_draws()).ok());
  // What begins behind an answer, and ends with them, was not the oracle's either.
  bench.task->EndProcesses();
  int num_looks = 0;
  bench.machine.idle = [&] {
    is_busy |= num_looks++ == 1;
    return is_busy ? absl::DeadlineExceededError("busy") : absl::OkStatus();
  };
  CHECK(bench.task->MakeFresh(bench.task->num_fresh_draws()).ok());
}

TEST_CASE("the reference's processes end with the oracle, those on other inputs too") {
  nlohmann::json script;
  script["loaded"]["num_other_inputs"] = 1;
  SharedBench bench(script);
  bench.other.reset();
  int num_ends = 0;
  // While the oracle on other inputs is alone: the third look of all is behind its first answer.
  bench.machine.idle = [&] {
    if (++num_ends == 2) bench.task->EndProcesses();
    return absl::OkStatus();
  };
  const absl::Status status = bench.task->Examine();
  INFO(status.ToString());
  CHECK(status.ok());
  CHECK(bench.machine.num_references_ended == 2);
}

}  // namespace
}  // namespace warpsmith
