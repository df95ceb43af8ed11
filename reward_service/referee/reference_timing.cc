#include "reward_service/referee/reference_timing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/lane_task.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 240;
// A process has as many rounds, by turns with the eager one, as three of a candidate: it is measured once a task.
constexpr int kFormInstancesMin = 2;
constexpr int kFormInstancesMax = 3;
// Of timing, and of a call once there was one: the first is recorded, or compiled.
constexpr double kTimingSecondsMax = 10;

// Ends it, and waits for that, as is done with a candidate.
void End(Jail* jail, const Lane& lane) {
  lane.Dismiss(jail->process().pid()).IgnoreError();  // it may have ended
  (void)jail->TakeBuffers();
}

// A run of what is loaded, in what is left of the limit.
std::optional<Fault> RunWithin(const FormLimit& limit, double seconds_max, Jail* jail) {
  const Fault late{v1::VERDICT_TIMEOUT, limit.TookLonger()};
  const double left_seconds = absl::ToDoubleSeconds(limit.left());
  if (left_seconds <= 0) return late;
  jail->LimitCalls(std::min(left_seconds, seconds_max));
  std::optional<Fault> fault = jail->Run();
  return fault && limit.left() <= absl::ZeroDuration() ? late : fault;
}

// Loads the program, and has it called until it is warm. In the first call it is recorded, and what that changes in the
// model's state is not known: its outputs are not compared.
absl::StatusOr<std::optional<Fault>> MakeReady(const PreparedTask& task, const Program& program,
                                               const FormLimit& ready, FormSide* side, Jail* jail) {
  ASSIGN_OR_RETURN(std::optional<Fault> fault, jail->Begin(program, nullptr));
  if (fault && ready.left() <= absl::ZeroDuration()) return Fault{v1::VERDICT_TIMEOUT, ready.TookLonger()};
  if (fault) return fault;
  const auto& draws = task.timing_draws();
  jail->Load(*draws.front());
  fault = RunWithin(ready, absl::ToDoubleSeconds(ready.max), jail);
  if (fault) return fault;
  for (size_t call = 1; call < kWarmUpCalls; ++call) {
    fault = side->Repeat(*draws[call % draws.size()]).fault;
    if (fault) return fault;
  }
  return std::nullopt;
}

}  // namespace

FormTime Unavailable(std::string_view reason) { return {.unavailable = Escape(reason, kReasonBytesMax)}; }

bool IsPassing(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// Warm-ups and timing: a round that begins at the end of the one budget, and one call that takes all that a call may.
absl::Duration MeasureTimeMax(const ReferenceForm& form) {
  return form.time_max + 2 * absl::Seconds(kTimingSecondsMax);
}

v1::Baseline ToBaseline(const ReferenceForm& form, const FormTime& time, double speedup) {
  v1::Baseline baseline;
  baseline.set_name(std::string(form.name));
  baseline.set_us(time.us);
  baseline.set_speedup(speedup * time.ratio);
  baseline.set_unavailable(time.unavailable);
  return baseline;
}

CallResult FormSide::Call(Batch sets, ProfileSampler*) {
  CallResult result;
  jail_->Load(sets);
  result.fault = RunWithin(limit_, kTimingSecondsMax, jail_);
  result.us = jail_->seconds() * 1e6;
  result.after_us = jail_->after_seconds() * 1e6;
  result.waited_us = jail_->waited_us();
  result.steady_us = jail_->steady_us();
  for (size_t call = 0; call < sets.size() && !result.fault; ++call) {
    result.fault = CheckOutputs(*sets[call], call);
  }
  return result;
}

std::optional<Fault> FormSide::CheckOutputs(const Draw& draw, size_t call) {
  for (size_t i = 0; i < layout_.outputs.size(); ++i) {
    const absl::StatusOr<Comparison> in_place = jail_->CompareInPlace(i, draw, call);
    if (in_place.ok() && in_place->right()) continue;
    Fault fault;
    const absl::StatusOr<const void*> actual = jail_->Output(i, fault, call);
    if (!actual.ok()) return fault;
    const Comparison result =
        Compare(layout_.outputs[i], draw.tolerances[i], draw.Expected(layout_, i), *actual);
    if (result.right()) continue;
    return Fault{v1::VERDICT_INCORRECT,
                 absl::StrCat("wrong outputs: output ", i, " ", result.first_difference)};
  }
  return std::nullopt;
}

absl::StatusOr<Overhead> FormTiming::OfReference(absl::StatusOr<Overhead> overhead) {
  if (overhead.ok()) overhead->candidate = overhead->reference;
  return overhead;
}

absl::StatusOr<FormTime> TimeForm(TimingDevice* device, TimerOptions options) {
  options.effort = {.num_instances_min = kFormInstancesMin, .num_instances_max = kFormInstancesMax};
  options.lane_seconds_max = kTimingSecondsMax;
  options.trusts_candidate = true;
  options.path.takes_between_off = true;
  options.least_us = 0;
  options.own_output_bytes = 0;
  Timer timer(device, std::move(options));
  ASSIGN_OR_RETURN(const std::optional<Fault> fault, timer.Run());
  if (fault) return Unavailable(fault->reason);
  const v1::Timing timing = timer.Timing();
  return FormTime{.us = timing.candidate().median_us(), .ratio = 1 / timing.speedup()};
}

absl::StatusOr<FormTime> MeasureForm(const ReferenceForm& form, PreparedTask& task, const Lane& lane,
                                     TimingDevice* eager, const TimerOptions& options) {
  LaneTask& kept = LaneTask::Of(task);
  const FormLimit ready{form.time_max};
  const FormLimit all{MeasureTimeMax(form), ready.since};
  ASSIGN_OR_RETURN(const auto jail, kept.StartForm(task, form));
  const absl::Time deadline = ready.since + ready.max;
  // Until then only code of ours has run in it.
  if (const absl::Status hello = jail->process().AwaitHello(deadline); !hello.ok())
    return absl::UnavailableError(hello.message());
  const Program program = kept.ProgramOf(task, std::string(form.key), deadline);
  absl::StatusOr<FormTime> time = FormTime();
  FormSide warm_up(jail.get(), task.layout(), all);
  if (const auto fault = MakeReady(task, program, ready, &warm_up, jail.get()); !fault.ok()) {
    time = absl::UnavailableError(fault.status().message());
  } else if (*fault) {
    time = Unavailable((*fault)->reason);
  } else if (const absl::Status admitted = lane.Admit(jail->process().pid()); !admitted.ok()) {
    time = absl::UnavailableError(admitted.message());
  } else {
    FormTiming device(eager, [&] { return std::make_unique<FormSide>(jail.get(), task.layout(), all); });
    time = TimeForm(&device, options);
  }
  End(jail.get(), lane);
  return time;
}

}  // namespace warpsmith
