// Whether a candidate is right: on every input set of its task, in a process of its own for each shape.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/referee/judging_device.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// What verification says of a candidate beside right or wrong.
struct Verified {
  std::optional<Fault> fault;
  // Whether other parameters than those of its construction can be put into the candidate.
  bool takes_parameters = true;
  // Without a fault: the process that was right on the task's own inputs, which ends with this.
  std::unique_ptr<CheckedProgram> program = nullptr;
  // Of StartedProgram, of all processes.
  absl::Duration waited = absl::ZeroDuration();
  absl::Duration constructing = absl::ZeroDuration();
};

struct VerifierOptions {
  Room room = Room::kSealed;
  // The lane is this judgement's since then, and for so long at most.
  absl::Time lane_since;
  double lane_seconds_max = 10;
  // Of TimerOptions: how calls are warmed that are timed, and beyond which time one is long [us].
  bool repeats = false;
  double long_call_us = 0;
};

// One judgement's verification; for the thread that holds the lane.
class Verifier {
 public:
  // All outlives it.
  Verifier(JudgingDevice* device, const VerifierOptions& options, v1::Measurement* measurement)
      : device_(device), options_(options), measurement_(measurement) {}

  // On the task's input sets, and on those of other shapes or strides where it has some. A status is a
  // failure of the machine.
  absl::StatusOr<Verified> Run(PreparedTask& task);

 private:
  absl::Status RunOnInputs(PreparedTask& task, Verified* verified);
  absl::StatusOr<std::optional<Fault>> CallOnAll(const std::vector<const Draw*>& draws,
                                                 CheckedProgram* program);
  std::optional<Fault> CallOn(const Draw& draw, bool is_first, CheckedProgram* program);
  double LaneSeconds() const;

  JudgingDevice* const device_;
  const VerifierOptions options_;
  v1::Measurement* const measurement_;
  absl::Duration off_clock_;  // so far
  bool own_distribution_right_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_VERIFIER_H_
