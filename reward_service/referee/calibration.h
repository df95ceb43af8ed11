// What is measured of a host: what the path to a candidate costs, what a sample costs, how fast memory is.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "reward_service/measure/core_pace.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/timed_side.h"

namespace warpsmith {

// Of runs without calls, some of which warm up first. Of a reference's jail: INVALID_ARGUMENT where it fails.
absl::StatusOr<EmptyCall> MeasureTurns(Jail& jail);

// A candidate that does nothing, called beside others by the same path: what this costs changes with the
// state of the machine, within seconds. For the thread that holds the lane. Its failures are the machine's:
// INTERNAL.
class EmptyCandidate {
 public:
  // Must not outlive `lane`.
  static absl::StatusOr<std::unique_ptr<EmptyCandidate>> Start(Zygote& parent, CandidateKind kind,
                                                               const std::filesystem::path& share_directory,
                                                               const Lane& lane,
                                                               TensorStore& store = HostStore());

  // What a call costs, of many in a row.
  absl::StatusOr<EmptyCall> Measure();
  // One batch of so many, which one release lets a program make; on a CPU of one.
  absl::StatusOr<EmptyCall> MeasureOnce(size_t num_calls);
  absl::StatusOr<EmptyCall> MeasureTurns();

 private:
  EmptyCandidate(std::unique_ptr<ChildProcess> process, Buffers buffers, const TaskLayout& layout,
                 const Lane& lane);
  absl::Status Call(size_t num_calls = 1);

  const Lane& lane_;
  Draw draw_;
  Jail jail_;
};

// What the core did for so many calls of the empty Python candidate more than for those of the native one [us].
absl::StatusOr<double> MeasurePace(EmptyCandidate* python, EmptyCandidate* native);
// The same several times, to compare with later. On the lane of a GPU, whose turn both have.
absl::Status LearnPace(EmptyCandidate* python, EmptyCandidate* native, CorePace* pace);

// Fills in what describes the host: all constants of verdict and credit that do are measured here, on the lane, which
// this thread holds. `python` is the empty candidate of that kind.
absl::Status MeasureHost(const Lane& lane, EmptyCandidate* python, RefereeFacts* facts);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
