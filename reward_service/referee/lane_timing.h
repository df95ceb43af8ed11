// Timing on a lane: the reference's warm jails, fresh ones of the candidate, and the lane's clock.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TIMING_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TIMING_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "reward_service/cuda/clock_reader.h"
#include "reward_service/measure/core_pace.h"
#include "reward_service/referee/calibration.h"
#include "reward_service/referee/candidate_jails.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/timed_side.h"

namespace warpsmith {

// What reads a GPU's clocks, or why nothing does.
using GpuClockReader = absl::StatusOr<std::unique_ptr<cuda::ClockReader>>;

// For the thread that holds the lane since `lane_since`. All it is given outlives it. `clocks`: where a GPU is used.
// `kept`: where processes need not start, and end, while one is timed. `pace`: where the core's pace is to be known, of
// native candidates.
class LaneTiming : public TimingDevice {
 public:
  LaneTiming(const CandidateJails& jails, PreparedTask* task, const Lane* lane,
             EmptyCandidate* empty_candidate, EmptyCandidate* empty_reference, absl::Time lane_since,
             const GpuClockReader* clocks = nullptr, KeptJails* kept = nullptr, CorePace* pace = nullptr);
  ~LaneTiming() override;

  absl::StatusOr<TimedSide*> Reference(int instance) override;
  int num_references() const override { return static_cast<int>(LaneTask::Of(*task_).baselines().size()); }
  absl::StatusOr<StartedSide> StartCandidate() override;
  absl::StatusOr<Overhead> MeasureOverhead() override;
  absl::StatusOr<Overhead> MeasureColdOverhead(size_t num_calls) override;
  absl::StatusOr<EmptyCall> MeasureMemory() override;
  absl::StatusOr<double> MeasureCoreSlowness() override;
  double Slowness(double reference_us) override {
    return LaneTask::Of(*task_).reference_pace().Slowness(reference_us);
  }
  absl::StatusOr<std::optional<cuda::ClockReading>> ReadClocks() override;
  double LaneSeconds() const override;

 private:
  class ReferenceSide;
  class CandidateSide;
  // What `measure` says of either empty candidate.
  absl::StatusOr<Overhead> OfBothSides(absl::FunctionRef<absl::StatusOr<EmptyCall>(EmptyCandidate*)> measure);

  CandidateJails jails_;
  PreparedTask* const task_;
  const Lane* const lane_;
  EmptyCandidate* const empty_candidate_;
  EmptyCandidate* const empty_reference_;
  absl::Time lane_since_;      // moved on by what is not on the candidate's clock
  bool may_construct_ = true;  // off that clock: the first process that is started here
  const GpuClockReader* const clocks_;
  KeptJails* const kept_;
  CorePace* const pace_;
  std::vector<double> paces_us_;
  Jail* baseline_ = nullptr;  // that was asked for last
  std::unique_ptr<ReferenceSide> reference_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_LANE_TIMING_H_
