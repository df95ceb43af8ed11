// Timing on a CPU: the reference's warm jails, fresh ones of the candidate, and the lane's clock.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CPU_TIMING_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CPU_TIMING_H_

#include <memory>
#include <vector>

#include "reward_service/referee/calibration.h"
#include "reward_service/referee/candidate_jails.h"
#include "reward_service/referee/cpu_task.h"
#include "reward_service/referee/timed_side.h"

namespace warpsmith {

// For the thread that holds the lane since `lane_since`. All it is given outlives it.
class CpuTiming : public TimingDevice {
 public:
  CpuTiming(const CandidateJails& jails, PreparedTask* task, const Lane* lane,
            EmptyCandidate* empty_candidate, EmptyCandidate* empty_reference, absl::Time lane_since);
  ~CpuTiming() override;

  absl::StatusOr<TimedSide*> Reference(int instance) override;
  int num_references() const override { return static_cast<int>(CpuTask::Of(*task_).baselines().size()); }
  absl::StatusOr<StartedSide> StartCandidate() override;
  absl::StatusOr<Overhead> MeasureOverhead(size_t num_calls) override;
  absl::Status SampleOverhead(ProfileSampler* sampler) override;
  double Slowness(double reference_us) override {
    return CpuTask::Of(*task_).reference_pace().Slowness(reference_us);
  }
  double LaneSeconds() const override;

 private:
  class ReferenceSide;
  class CandidateSide;

  CandidateJails jails_;
  PreparedTask* const task_;
  const Lane* const lane_;
  EmptyCandidate* const empty_candidate_;
  EmptyCandidate* const empty_reference_;
  const absl::Time lane_since_;
  Jail* baseline_ = nullptr;  // that was asked for last
  std::unique_ptr<ReferenceSide> reference_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CPU_TIMING_H_
