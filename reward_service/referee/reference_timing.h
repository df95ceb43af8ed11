// The reference in another form than the eager one, timed beside that: what it takes is kept with the task.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_REFERENCE_TIMING_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_REFERENCE_TIMING_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "reward_service/measure/lane.h"
#include "reward_service/measure/reference_form.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/timed_side.h"
#include "reward_service/referee/timer.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

class PreparedTask;

// What a form takes, or why nobody knows.
struct FormTime {
  double us = 0;     // of a call
  double ratio = 0;  // over the eager reference's time beside it
  std::string unavailable = {};
};

// Of a reason that may hold words of the task.
FormTime Unavailable(std::string_view reason);

// Whether a form was not measured for a reason that says nothing of it: the machine's, and may be gone the next time.
bool IsPassing(const absl::Status& status);

// How long a form may take by the wall, and since when.
struct FormLimit {
  absl::Duration max;
  absl::Time since = absl::Now();

  absl::Duration left() const { return since + max - absl::Now(); }
  std::string TookLonger() const { return absl::StrCat("took longer than ", absl::FormatDuration(max)); }
};

// Of MeasureForm(), but for the eager reference's own calls.
absl::Duration MeasureTimeMax(const ReferenceForm& form);

// For the grade of a program that is `speedup` times as fast as the eager reference.
v1::Baseline ToBaseline(const ReferenceForm& form, const FormTime& time, double speedup);

// A jail of the reference in some form. Its outputs are compared with what is expected after every call, as a
// candidate's are; a fault says which are wrong, or that the limit is reached. `jail` outlives it.
class FormSide : public TimedSide {
 public:
  FormSide(Jail* jail, const TaskLayout& layout, const FormLimit& limit)
      : jail_(jail), layout_(layout), limit_(limit) {}

  CallResult Call(Batch sets, ProfileSampler* sampler) override;
  void TellSteady() override { jail_->TellSteady(jail_->on_gpu()); }
  CallResult Repeat(const Draw& draw) override { return Call({&draw}, nullptr); }
  int64_t HeldBytes() const override { return jail_->process().anonymous_bytes(); }

 private:
  std::optional<Fault> CheckOutputs(const Draw& draw, size_t call);

  Jail* const jail_;
  const TaskLayout& layout_;
  const FormLimit limit_;
};

// The eager reference beside another form, whose path to its process is as long. On a clock of its own: the time is
// no candidate's.
class FormTiming : public TimingDevice {
 public:
  using MakeSide = std::function<std::unique_ptr<TimedSide>()>;
  // `eager` outlives it. All sides are of one process.
  FormTiming(TimingDevice* eager, MakeSide make_side) : eager_(eager), make_side_(std::move(make_side)) {}

  absl::StatusOr<TimedSide*> Reference(int instance) override { return eager_->Reference(instance); }
  int num_references() const override { return eager_->num_references(); }
  absl::StatusOr<StartedSide> StartCandidate() override { return StartedSide{make_side_(), std::nullopt}; }
  absl::StatusOr<Overhead> MeasureOverhead() override { return OfReference(eager_->MeasureOverhead()); }
  absl::StatusOr<Overhead> MeasureColdOverhead(size_t num_calls) override {
    return OfReference(eager_->MeasureColdOverhead(num_calls));
  }
  absl::StatusOr<EmptyCall> MeasureMemory() override { return eager_->MeasureMemory(); }
  double Slowness(double reference_us) override { return eager_->Slowness(reference_us); }
  absl::StatusOr<std::optional<cuda::ClockReading>> ReadClocks() override { return eager_->ReadClocks(); }
  double LaneSeconds() const override { return absl::ToDoubleSeconds(absl::Now() - since_); }

 private:
  static absl::StatusOr<Overhead> OfReference(absl::StatusOr<Overhead> overhead);

  TimingDevice* const eager_;
  const MakeSide make_side_;
  const absl::Time since_ = absl::Now();
};

// Times what stands in the candidate's place of `device`. `options` are those of a candidate there. INVALID_ARGUMENT:
// the eager reference fails.
absl::StatusOr<FormTime> TimeForm(TimingDevice* device, TimerOptions options);

// Starts a process of the reference in this form, beside the task's eager one, which is warm; has it called until it
// is warm, times it, and ends it, all within MeasureTimeMax(). For whoever holds the lane and the device. What the form
// itself cannot do is in its FormTime; a status is as of TimeForm(), or the machine's.
absl::StatusOr<FormTime> MeasureForm(const ReferenceForm& form, PreparedTask& task, const Lane& lane,
                                     TimingDevice* eager, const TimerOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_REFERENCE_TIMING_H_
