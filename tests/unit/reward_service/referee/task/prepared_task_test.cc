#include "reward_service/referee/task/prepared_task.h"

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/held_turn.h"
#include "tests/support/puppet_task.h"
#include "tests/unit/reward_service/referee/task/task_making.h"

namespace warpsmith {
namespace {

constexpr int kTimingDraws = TimingDraws(1);
constexpr int kFreshDraws = FreshDrawsWanted(1);

PreparedTask Prepare(const TaskSource& source) {
  return {source, 7, TestLimits(), &TestZygote(), 1, TestPlace()};
}

std::vector<std::string> Styles(const PreparedTask& task) {
  std::vector<std::string> styles;
  for (const Draw* draw : task.verification_draws()) styles.push_back(draw->style);
  return styles;
}

std::string InputBytes(const PreparedTask& task, const Draw& draw) {
  return {draw.inputs.get(), static_cast<size_t>(task.layout().input_buffer_bytes)};
}

TEST_CASE("a process of a task has one launch queue, and two where its libraries have streams of their own") {
  const auto queues = [](const char* layer) { return Prepare({"task", layer}).num_launch_queues(); };
  CHECK(queues("nn.Conv2d(3, 8, 3)") == 1);
  CHECK(queues("nn.LSTM(8, 8)") == 2);
  CHECK(queues("torch.linalg.svd(x)") == 2);
}

TEST_CASE("inputs take the styles that keep what their draws show, and else are the task's own") {
  const auto styles = [](const char* inputs) {
    PreparedTask task = Prepare(SmallTask("pass", "return torch.relu(x) + 1", inputs));
    REQUIRE(task.Examine().ok());
    CHECK(task.construction_draws().size() >= 3);
    return Styles(task);
  };
  using List = std::vector<std::string>;
  CHECK(styles("[torch.randn(32, 32)]") == List{"own", "large", "small", "mixed", "outliers"});
  CHECK(styles("[torch.randn(32, 32).sort().values]") == List(5, "own"));
}

TEST_CASE("a generator that breaks the contract makes no task, with the reason") {
  for (const auto& [inputs, complaint] : {
           std::pair("[torch.randn(int(torch.randint(4, 10000, ())))]", "draws must agree"),
           std::pair("[torch.arange(64.0)]", "the same tensors under every seed"),
           std::pair("[torch.load('/absent')]", "FileNotFoundError"),
           std::pair("torch.__dict__.setdefault('left', [1, 1]).pop() and [torch.randn(64)]",
                     "pop from empty"),
       }) {
    PreparedTask task = Prepare(SmallTask("pass", "return torch.exp(x)", inputs));
    const absl::Status status = task.Examine();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(complaint));
  }
}

TEST_CASE("a reference that refuses other inputs in words is no fault of the task") {
  PreparedTask task =
      Prepare(SmallTask("pass", "assert x.max() < 5; return torch.exp(x)", "[torch.randn(32, 32)]"));
  const absl::Status status = task.Examine();
  INFO(status.ToString());
  CHECK(status.ok());
}

TEST_CASE(
    "plain weights that are drawn stand behind state_dict(), and keep their values where parameters do not") {
  PreparedTask task =
      Prepare(SmallTask("self.weight = torch.randn(8, 8); self.two = torch.full((8,), 2.0); self.bias = "
                        "torch.nn.Parameter(torch.randn(8))",
                        "return x @ self.weight * self.two + self.bias", "[torch.randn(64, 8)]"));
  REQUIRE(task.Examine().ok());
  REQUIRE(task.layout().parameters.size() == 2);
  const TensorSpec &bias = task.layout().parameters[0], &weight = task.layout().parameters[1];
  CHECK((bias.name == "bias" && !bias.constant));
  CHECK((weight.name == "weight" && weight.constant));
  const Draw& own = *task.verification_draws()[0];
  const Draw& other = *task.verification_draws()[1];
  CHECK(other.parameter_seed != 0);
  const auto differs = [&](const TensorSpec& spec) {
    return std::memcmp(own.inputs.get() + spec.offset, other.inputs.get() + spec.offset, spec.num_bytes) != 0;
  };
  CHECK(differs(bias));
  CHECK_FALSE(differs(weight));
}

TEST_CASE("a task of constants alone has no parameters that take other values") {
  PreparedTask task = Prepare(SmallTask("self.register_buffer('table', torch.linspace(-3, 3, 8))",
                                        "return x + self.table", "[torch.randn(64, 8)]"));
  REQUIRE(task.Examine().ok());
  CHECK(task.layout().parameters.size() == 1);
  CHECK_FALSE(task.has_parameters());
  CHECK(task.construction_draws().size() == task.verification_draws().size());
}

// What becomes of a task of puppets, completed if it can be examined.
absl::Status Making(const nlohmann::json& script, absl::Duration answer_time_max,
                    absl::Duration step_time_max) {
  const auto zygote = StartPuppets(script);
  TaskLimits limits = PuppetTaskLimits();
  limits.answer_time_max = answer_time_max;
  limits.step_time_max = step_time_max;
  PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1, PuppetPlace(zygote.get(), limits));
  const absl::Status status = task.Examine();
  return status.ok() ? task.Complete() : status;
}

nlohmann::json Silent(const char* asked) { return {{"answers", {{asked, "silent"}}}}; }

TEST_CASE("an answer has its limit, whoever of the task is asked for it") {
  for (const char* asked : {"load", "window", "draw mixed", "run Model"}) {
    const absl::Status status = Making(Silent(asked), absl::Milliseconds(200), absl::InfiniteDuration());
    INFO(asked << ": " << status.ToString());
    CHECK(absl::IsInvalidArgument(status));
  }
}

TEST_CASE("all answers of a step have one limit together, those on other inputs and of baselines too") {
  nlohmann::json on_other_inputs = Silent("load other");
  on_other_inputs["loaded"] = {{"num_other_inputs", 1}};
  // Each in time, but not together.
  const nlohmann::json slow_draws = {{"answers", {{"draw", 200}}}};
  const nlohmann::json slow_calls = {{"answers", {{"run Model", 200}}}};
  for (const nlohmann::json& script :
       {slow_draws, slow_calls, Silent("draw mixed"), on_other_inputs, Silent("begin Model")}) {
    const absl::Status status = Making(script, absl::Hours(1), absl::Milliseconds(500));
    INFO(script << ": " << status.ToString());
    CHECK(absl::IsInvalidArgument(status));
  }
}

TEST_CASE("a reference that finds no memory on the host is told how much there is") {
  const nlohmann::json failed = {{"op", "failed"}, {"error", "DefaultCPUAllocator: can't allocate memory"}};
  CHECK(Making({{"answers", {{"load", failed}}}}, absl::Hours(1), absl::Hours(1)) ==
        absl::InvalidArgumentError("DefaultCPUAllocator: can't allocate memory; an oracle may have 1024 MiB "
                                   "of the host's memory"));
}

TEST_CASE("an oracle with a slow constructor is not replaced at each draw, once that is known") {
  TaskLimits limits = PuppetTaskLimits();
  limits.oracle_cpu_seconds_max = 2;
  // The first has too little left after its start, the second has its constructor's time besides; a third fails.
  const nlohmann::json script = {{"spins", 1200},
                                 {"loaded", {{oracle::Loaded::construction_us.name, 600000}}},
                                 {"children", {{"2", {{"load", "end"}}}}}};
  const auto zygote = StartPuppets(script);
  PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1, PuppetPlace(zygote.get(), limits));
  REQUIRE(task.Examine().ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = task.MakeFresh(1).status();
    INFO(status.ToString());
    CHECK(status.ok());
  }
}

TEST_CASE("fresh draws have one limit together, from when they are asked for") {
  TaskLimits limits = PuppetTaskLimits();
  limits.answer_time_max = absl::Hours(1);
  limits.step_time_max = absl::Seconds(2);
  // Quick for the first two steps; each of the fresh ones is in time, but not all together.
  nlohmann::json answers(kTimingDraws - kFreshDraws, nullptr);
  answers.insert(answers.end(), kFreshDraws, 600);
  const auto quick_zygote = StartPuppets();
  const auto slow_zygote = StartPuppets({{"answers", {{"draw own", answers}}}});
  PreparedTask quick(PuppetTaskSource(), 7, limits, quick_zygote.get(), 1,
                     PuppetPlace(quick_zygote.get(), limits));
  PreparedTask slow(PuppetTaskSource(), 7, limits, slow_zygote.get(), 1,
                    PuppetPlace(slow_zygote.get(), limits));
  for (PreparedTask* task : {&quick, &slow}) {
    REQUIRE(task->Examine().ok());
    REQUIRE(task->Complete().ok());
  }
  const absl::Status status = slow.MakeFresh(slow.num_fresh_draws()).status();
  INFO(status.ToString());
  CHECK(absl::IsInvalidArgument(status));
  // As long as a step may last has passed since the last one of this task began.
  CHECK(quick.MakeFresh(quick.num_fresh_draws()).ok());
}

TEST_CASE("an oracle on a device that is one for all waits for its turn, which is no part of its time") {
  DeviceTurn turn;
  FakeMachine machine;
  machine.turn = &turn;
  TaskLimits limits = PuppetTaskLimits();
  limits.step_time_max = absl::Seconds(2);
  const auto zygote = StartPuppets();
  PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1, PlacesOf(&machine));
  auto judgement = HoldTurn(&turn, DeviceTurn::Kind::kAlone);
  absl::Notification done;
  absl::Status status;
  std::thread maker([&] {
    status = task.Examine();
    done.Notify();
  });
  CHECK_FALSE(done.WaitForNotificationWithTimeout(2 * limits.step_time_max));
  judgement.reset();
  maker.join();
  INFO(status.ToString());
  CHECK(status.ok());
}

TEST_CASE("a task whose reference survives its own inputs alone has enough draws, and no more") {
  nlohmann::json answers;
  for (const char* style : {"large", "small", "mixed", "outliers"})
    answers[std::string("draw ") + style] = {{"op", "unusable"}};
  const auto zygote = StartPuppets({{"answers", answers}});
  PreparedTask task(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1, PuppetPlace(zygote.get()));
  REQUIRE(task.Examine().ok());
  REQUIRE(task.Complete().ok());
  auto fresh = task.MakeFresh(task.num_fresh_draws());
  REQUIRE(fresh.ok());
  task.Renew(*std::move(fresh));
  CHECK(task.timing_draws().size() == static_cast<size_t>(kTimingDraws));
  for (const Draw* draw : task.verification_draws())
    CHECK(std::count(task.timing_draws().begin() + kWarmUpDraws, task.timing_draws().end(), draw) == 0);
}

TEST_CASE("draws that are made in one turn are each another's, also where one of them is refused") {
  FakeMachine machine;
  machine.num_batched_calls = 4;
  const nlohmann::json unusable = {{"op", "unusable"}};
  for (const nlohmann::json& of_own :
       {nlohmann::json::array(), nlohmann::json({nullptr, nullptr, unusable})}) {
    const auto zygote =
        StartPuppets({{"answers", {{"draw own", of_own}}},
                      {"loaded", {{"parameters", {{{"code", 2}, {"bits", 32}, {"shape", {4}}}}}}}});
    PreparedTask task(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1, PlacesOf(&machine));
    REQUIRE(task.Examine().ok());
    const absl::Status completed = task.Complete();
    INFO(completed.ToString());
    REQUIRE(completed.ok());
    auto fresh = task.MakeFresh(task.num_fresh_draws());
    REQUIRE(fresh.ok());
    CHECK(fresh->size() == static_cast<size_t>(FreshDrawsWanted(4)));
    task.Renew(*std::move(fresh));
    CHECK(task.timing_draws().size() == static_cast<size_t>(TimingDraws(4)));
    std::set<std::string> different;
    for (const Draw* draw : task.timing_draws()) different.insert(InputBytes(task, *draw));
    CHECK(different.size() == task.timing_draws().size());
  }
}

TEST_CASE("a task of over 32 MiB leaves an input set to be sampled, like any other") {
  PreparedTask task = Prepare(SmallTask("pass", "return x + 1", "[torch.randn(5, 1024, 1024)]"));
  REQUIRE(task.Examine().ok());
  REQUIRE(task.Complete().ok());
  REQUIRE(task.layout().tensor_bytes() > 32 << 20);
  CHECK(task.timing_draws().size() + kFreshDraws > kWarmUpDraws + 2 * kRoundsMax);
}

TEST_CASE("fresh draws stand among those of a judgement, also when the oracle has ended") {
  PreparedTask task = Prepare(SmallTask("pass", "return torch.relu(x) + 1", "[torch.randn(128, 256)]"));
  REQUIRE(task.Examine().ok());
  REQUIRE(task.Complete().ok());
  const size_t num_verification = task.verification_draws().size();
  std::vector<std::string> seen;
  for (const auto* list : {&task.verification_draws(), &task.timing_draws()}) {
    for (const Draw* draw : *list) seen.push_back(InputBytes(task, *draw));
  }
  for (int round = 0; round < 2; ++round) {
    auto fresh = task.MakeFresh(task.num_fresh_draws());
    INFO(fresh.status().ToString());
    REQUIRE(fresh.ok());
    CHECK(fresh->size() == kFreshDraws);
    task.Renew(*std::move(fresh));
    CHECK(task.verification_draws().size() == num_verification + 1);
    CHECK(task.timing_draws().size() == kTimingDraws);
    std::vector<const Draw*> news(task.timing_draws().begin() + 1,
                                  task.timing_draws().begin() + 1 + kFreshDraws);
    CHECK(task.verification_draws().back() == news.front());
    for (const Draw* draw : task.verification_draws()) {
      const auto counted = task.timing_draws().begin() + kWarmUpDraws;
      CHECK(std::find(counted, task.timing_draws().end(), draw) == task.timing_draws().end());
    }
    for (const Draw* draw : news) {
      CHECK(draw->own_distribution);
      CHECK(std::find(seen.begin(), seen.end(), InputBytes(task, *draw)) == seen.end());
      seen.push_back(InputBytes(task, *draw));
    }
    news.front()->shown = true;
    const FreshDraws given_back = task.Forget();
    CHECK(given_back.size() == kFreshDraws);
    CHECK(std::count_if(given_back.begin(), given_back.end(), [](const auto& draw) { return draw->shown; }) ==
          1);
    CHECK(task.Forget().empty());
    CHECK(task.verification_draws().size() == num_verification);
    CHECK(task.timing_draws().size() == kTimingDraws - kFreshDraws);
    task.CloseOracle();
  }
}

}  // namespace
}  // namespace warpsmith
