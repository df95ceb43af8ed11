// A candidate's jail of which every call is compared with what the reference makes of the same inputs.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_

#include <memory>
#include <optional>
#include <utility>

#include "reward_service/measure/judge_request.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/process/jail.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// One thread at a time. `layout` and `measurement` outlive it; numbers go into the latter's correctness.
class CheckedJail {
 public:
  CheckedJail(std::unique_ptr<Jail> jail, CandidateKind kind, const TaskLayout& layout,
              v1::Measurement* measurement)
      : jail_(std::move(jail)),
        is_native_(kind == CandidateKind::kNative),
        layout_(layout),
        measurement_(measurement) {}

  // Loads, calls, stops, and compares what is there: outputs, those of the call before, inputs, guards.
  // Nothing: all is right.
  std::optional<Fault> Call(const Draw& draw, Comparing comparing);
  // Calls once more on the inputs of the last call, and compares nothing yet: that would take the caches from a
  // call that is to be timed next. The next Call() compares this one's outputs, too.
  std::optional<Fault> Repeat();
  // The last call's wall time [us], from the release to the confirmed stop.
  double us() const { return jail_->seconds() * 1e6; }

  Jail& jail() { return *jail_; }
  Buffers TakeBuffers() { return jail_->TakeBuffers(); }  // ends the process first

 private:
  std::optional<Fault> TakeInputsBack(const Draw& draw);
  std::optional<Fault> CheckFormerOutputs();
  std::optional<Fault> CheckOutput(const Draw& draw, size_t index, Comparing comparing);
  std::optional<Fault> Wrong(const Draw& draw, size_t index, const Comparison& result, Comparing comparing);
  std::optional<Fault> FindView(const Draw& draw, size_t index);
  void Count(const Tolerance& tolerance, const Comparison& result);
  v1::Correctness& correctness() { return *measurement_->mutable_grade()->mutable_correctness(); }

  std::unique_ptr<Jail> jail_;
  const bool is_native_;
  const TaskLayout& layout_;
  v1::Measurement* const measurement_;
  const Draw* former_draw_ = nullptr;  // of the call before
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_
