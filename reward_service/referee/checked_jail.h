// A candidate on a CPU: a jail of which every call is compared with what the reference makes of the same inputs.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/process/jail.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// `layout`, `lane` and `measurement` outlive it; numbers go into the last one's correctness. `since`: before its
// program was started. At its end the process leaves the lane, ends, and then its buffers are given back.
class CheckedJail : public CheckedProgram {
 public:
  CheckedJail(std::unique_ptr<Jail> jail, CandidateKind kind, const TaskLayout& layout, const Lane* lane,
              std::function<void(Buffers)> return_buffers, v1::Measurement* measurement, absl::Time since)
      : jail_(std::move(jail)),
        since_(since),
        is_native_(kind == CandidateKind::kNative),
        layout_(layout),
        lane_(lane),
        return_buffers_(std::move(return_buffers)),
        measurement_(measurement) {}
  ~CheckedJail() override;

  std::optional<Fault> Call(const Draw& draw, Comparing comparing) override {
    return CallAll({&draw}, comparing);
  }
  // One call on each, and then all are compared. us() is that of all of them.
  std::optional<Fault> CallAll(Batch draws, Comparing comparing);
  // Compares nothing yet: that would take the caches from a call that is to be timed next.
  std::optional<Fault> Repeat() override;
  // From the release to the confirmed stop.
  double us() const override { return jail_->seconds() * 1e6; }
  // A native candidate is handed them with every call.
  bool takes_parameters() const override { return is_native_ || jail_->parameters_loaded(); }
  absl::StatusOr<bool> SpreadThreads() override;

  Jail& jail() { return *jail_; }
  // Whether the device's memory was scarce at some time since its program was started.
  bool MayHaveLackedMemory() const { return jail_->store().WasScarceSince(since_); }

 private:
  std::optional<Fault> LoadAndRun(Batch draws);
  std::optional<Fault> TakeInputsBack(Batch draws);
  std::optional<Fault> CheckFormerOutputs();
  std::optional<Fault> CheckFormerCall(size_t call);
  std::optional<Fault> CheckCall(const Draw& draw, size_t call, Comparing comparing);
  std::optional<Fault> CheckOutput(const Draw& draw, size_t call, size_t index, Comparing comparing);
  std::optional<Fault> Wrong(const Draw& draw, size_t call, size_t index, const Comparison& result,
                             Comparing comparing);
  std::optional<Fault> FindView(const Draw& draw, size_t call, size_t index);
  std::optional<Fault> CheckOutlier(size_t index, const Comparison& result);
  Comparison CompareOnHost(const Draw& draw, size_t index, const void* actual) const;
  void Count(const Tolerance& tolerance, const Comparison& result);
  v1::Correctness& correctness() { return *measurement_->mutable_grade()->mutable_correctness(); }

  std::unique_ptr<Jail> jail_;
  const absl::Time since_;  // its program began to start
  const bool is_native_;
  const TaskLayout& layout_;
  const Lane* const lane_;
  const std::function<void(Buffers)> return_buffers_;
  v1::Measurement* const measurement_;
  std::vector<const Draw*> former_draws_;  // of the calls before
  std::vector<int64_t> former_outliers_;   // by output: the first of the last draw that had some
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CHECKED_JAIL_H_
