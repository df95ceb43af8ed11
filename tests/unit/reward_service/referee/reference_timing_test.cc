#include "reward_service/referee/reference_timing.h"

#include <cmath>

#include "core/base/log.h"
#include "reward_service/referee/lane_task.h"
#include "tests/support/catch.h"
#include "tests/support/fake_timing_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

const ReferenceForm kForm{.key = "cuda_graph", .name = "cuda graph", .time_max = absl::Seconds(20)};

TimerOptions Options() {
  static const std::vector<Draw> sets(40);
  TimerOptions options;
  options.can_sample = false;
  options.path.cold = true;
  options.batch_calls_max = 4;
  for (const Draw& set : sets) options.input_sets.push_back(&set);
  return options;
}

// The eager reference, 100 us a call, and another form of it, 25 us, by a path of 10 us: three calls are a batch.
struct Pair {
  Pair() : Pair(Takes(0), Takes(0)) {
    eager.reference_side.us_of_batch = [](size_t num_sets) {
      return 10 + 100 * static_cast<double>(num_sets);
    };
    us_of_batch = [](size_t num_sets) { return 10 + 25 * static_cast<double>(num_sets); };
  }
  Pair(std::function<CallResult(int)> eager_calls, std::function<CallResult(int)> form_calls)
      : eager(std::move(eager_calls), form_calls), form(std::move(form_calls)) {}

  absl::StatusOr<FormTime> Time() {
    FormTiming device(&eager, [this] {
      ++num_sides;
      auto side = std::make_unique<FakeSide>(form, &seconds, &num_unsampled);
      side->us_of_batch = us_of_batch;
      return side;
    });
    return TimeForm(&device, Options());
  }

  FakeTimingDevice eager;
  std::function<CallResult(int)> form;
  std::function<double(size_t num_sets)> us_of_batch;  // of the form, in place of what calls say
  int num_sides = 0;
  double seconds = 0;
  int num_unsampled = 0;
};

TEST_CASE("a form's time is that beside the eager reference, without what its path takes") {
  Pair pair;
  pair.eager.overhead.candidate.us = 400;  // by another path
  const auto time = pair.Time();
  REQUIRE(time.ok());
  CHECK(time->unavailable.empty());
  CHECK(time->us == Approx(25));
  CHECK(time->ratio == Approx(0.25));
  CHECK(pair.num_sides == 2);
  CHECK(pair.eager.reference_side.num_sets.back() == 3);
}

TEST_CASE("what a process does between calls is taken off either side, as far as it did not hide") {
  const auto waited = [](double us) {
    return [us](int) { return CallResult{.us = 0, .fault = std::nullopt, .waited_us = us}; };
  };
  Pair pair(waited(1000), waited(0));
  pair.eager.reference_side.us_of_batch = Pair().eager.reference_side.us_of_batch;
  pair.us_of_batch = Pair().us_of_batch;
  pair.eager.further_call_us = 10;
  const auto time = pair.Time();
  REQUIRE(time.ok());
  CHECK(time->us == Approx((85 - 30) / 3.0));  // whose process did not wait: none of it hid
  CHECK(time->ratio == Approx((85 - 30) / 300.0));
}

TEST_CASE("a call that no other follows charges a form nothing") {
  Pair pair;
  pair.us_of_batch = [](size_t num_sets) { return num_sets == 1 ? 50000 : 85; };
  const auto time = pair.Time();
  REQUIRE(time.ok());
  CHECK(time->us == Approx(25));
}

TEST_CASE(
    "a form that fails is not available, for the reason it gave; the eager one that fails is the task's "
    "fault") {
  const auto wrong = [](int) { return CallResult{10, Fault{v1::VERDICT_INCORRECT, "wrong \x01 outputs"}}; };
  const auto time = Pair(Takes(210), wrong).Time();
  REQUIRE(time.ok());
  CHECK(time->unavailable == Escape("wrong \x01 outputs"));
  CHECK(absl::IsInvalidArgument(Pair(wrong, Takes(210)).Time().status()));
  CHECK(Unavailable(std::string(1000, 'x')).unavailable == Escape(std::string(1000, 'x'), 240));
}

TEST_CASE("a grade tells a form's time and the speed-up over it, or why there is none") {
  const v1::Baseline known = ToBaseline(kForm, {.us = 50, .ratio = 0.5}, 3);
  CHECK(known.name() == "cuda graph");
  CHECK(known.us() == 50);
  CHECK(known.speedup() == 1.5);
  CHECK(known.unavailable().empty());
  const v1::Baseline unknown = ToBaseline(kForm, Unavailable("cannot be captured"), 3);
  CHECK(unknown.us() == 0);
  CHECK(unknown.speedup() == 0);
  CHECK(unknown.unavailable() == "cannot be captured");
}

// A completed task of puppets, beside whose eager reference another form is measured.
absl::StatusOr<FormTime> Measure(const nlohmann::json& script, const ReferenceForm& form = kForm) {
  PuppetTask puppets(script);
  WS_CHECK(puppets.task->Complete().ok());
  FakeTimingDevice eager(Takes(2010), Takes(0));
  TimerOptions options;
  options.can_sample = false;
  options.input_sets = puppets.task->timing_draws();
  const auto time = MeasureForm(form, *puppets.task, PuppetLane(), &eager, options);
  for (const auto& baseline : LaneTask::Of(*puppets.task).baselines()) {
    CHECK(baseline->process().num_threads() > 0);  // those of the eager reference live
  }
  return time;
}

TEST_CASE("a form is begun as it is asked for, called, compared and timed") {
  const auto time = Measure({{"output", 5}, {"expected", {{"own", 5}}}});
  REQUIRE(time.ok());
  CHECK(time->unavailable.empty());
  CHECK(time->us > 0);
  CHECK(std::isfinite(time->ratio));
}

TEST_CASE("wrong outputs, a form that cannot be made and one that ends are told and cost the task nothing") {
  CHECK(Measure({{"output", 5}, {"expected", {{"own", 4}}}})->unavailable ==
        "wrong outputs: output 0 [0]: 5, expected 4");
  const nlohmann::json refused = {{"op", "failed"}, {"error", "the model cannot be captured: it waits"}};
  CHECK(Measure({{"answers", {{"begin Model cuda_graph", refused}}}})->unavailable ==
        "the model cannot be captured: it waits");
  const nlohmann::json later = {nullptr, "silent"};
  CHECK(Measure({{"answers", {{"run Model cuda_graph", later}}}})->unavailable == "no result after 10 s");
  CHECK(Measure({{"answers", {{"run Model cuda_graph", "end"}}}})->unavailable ==
        "the program exited with code 7 before its result");
}

TEST_CASE("one limit holds for all that makes a form ready: beginning it and its first run together") {
  ReferenceForm form = kForm;
  form.time_max = absl::Seconds(1);
  const absl::Time begin = absl::Now();
  const nlohmann::json slow = {{"begin Model cuda_graph", 700}, {"run Model cuda_graph", {700, nullptr}}};
  CHECK(Measure({{"answers", slow}}, form)->unavailable == "took longer than 1s");
  CHECK(Measure({{"answers", {{"run Model cuda_graph", "silent"}}}}, form)->unavailable ==
        "took longer than 1s");
  CHECK(Measure({{"answers", {{"begin Model cuda_graph", "silent"}}}}, form)->unavailable ==
        "took longer than 1s");
  CHECK(absl::Now() - begin < absl::Seconds(5));
  CHECK(MeasureTimeMax(form) == absl::Seconds(1 + 20));
}

TEST_CASE("a call has no more time than is left of the limit of all, and none once that is over") {
  const auto call_within = [](absl::Duration left) {
    const nlohmann::json script = {{"answers", {{"run Model cuda_graph", "silent"}}}};
    PuppetTask puppets(script);
    WS_CHECK(puppets.task->Complete().ok());
    LaneTask& kept = LaneTask::Of(*puppets.task);
    const auto jail = *kept.StartForm(*puppets.task, kForm);
    const Program program = kept.ProgramOf(*puppets.task, "cuda_graph", absl::Now() + absl::Seconds(20));
    WS_CHECK(!*jail->Begin(program, nullptr));
    FormSide side(jail.get(), puppets.task->layout(),
                  {absl::Seconds(30), absl::Now() + left - absl::Seconds(30)});
    const absl::Time begin = absl::Now();
    CHECK(side.Repeat(*puppets.task->timing_draws().front()).fault->reason == "took longer than 30s");
    return absl::Now() - begin;
  };
  CHECK(call_within(absl::Milliseconds(300)) < absl::Seconds(3));
  CHECK(call_within(-absl::Seconds(1)) < absl::Milliseconds(300));
}

TEST_CASE("what the machine could not do says nothing of a form") {
  const nlohmann::json unconfined = {{"hello", {{"op", "failed"}, {"error", "no namespace"}}}};
  // Forked after an oracle and three processes of the eager reference.
  const auto time = Measure({{"children", {{"4", unconfined}}}});
  CHECK(time.status().message() == "a process could not be confined: no namespace");
  CHECK(IsPassing(time.status()));
  ReferenceForm brief = kForm;
  brief.time_max = absl::Seconds(1);
  CHECK(IsPassing(Measure({{"children", {{"4", {{"hello", "silent"}}}}}}, brief).status()));
  CHECK(IsPassing(absl::InternalError("a process could not be confined")));
  CHECK(IsPassing(absl::ResourceExhaustedError("no memory of the GPU")));
  CHECK(IsPassing(absl::UnavailableError("the zygote ended")));
  CHECK_FALSE(IsPassing(absl::OkStatus()));
  CHECK_FALSE(IsPassing(absl::InvalidArgumentError("the eager reference fails")));
}

}  // namespace
}  // namespace warpsmith
