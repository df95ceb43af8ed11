// What the path to a candidate costs, and how fast the lane's memory is.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/profile/profile_sampler.h"

namespace warpsmith {

// A candidate that does nothing, called beside others by the same path: what this costs changes with the
// state of the machine, within seconds. For the thread that holds the lane. Its failures are the machine's:
// INTERNAL.
class EmptyCandidate {
 public:
  // Must not outlive `lane`.
  static absl::StatusOr<std::unique_ptr<EmptyCandidate>> Start(Zygote& parent, CandidateKind kind,
                                                               const std::filesystem::path& share_directory,
                                                               const Lane& lane);

  // Of a call, from release to confirmed stop [us]: the median of some, after others.
  absl::StatusOr<double> Microseconds();

  // Has a call sampled, after one that is not. Nothing where sampling is forbidden.
  absl::Status SampleCall(ProfileSampler& sampler);

 private:
  EmptyCandidate(std::unique_ptr<ChildProcess> process, Buffers buffers, const TaskLayout& layout,
                 const Lane& lane);
  absl::Status Call();

  const Lane& lane_;
  Draw draw_;
  Jail jail_;
};

// GB/s of copying, reads and writes added, over buffers larger than any cache. On the lane.
double MeasureMemoryCeiling();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
