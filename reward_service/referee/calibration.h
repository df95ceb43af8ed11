// What an empty candidate costs on this lane, and how fast its memory is.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "reward_service/referee/jail.h"
#include "reward_service/referee/profile_sampler.h"
#include "reward_service/referee/warm_parent.h"

namespace warpsmith {

// A call that does nothing, by the same path as any candidate.
struct EmptyCall {
  double median_us = 0;                      // from release to confirmed stop; of the fastest of some batches
  ProfileSampler::SamplesPerCall samples{};  // zero where sampling is forbidden
};

// On the thread that holds the lane.
absl::StatusOr<EmptyCall> MeasureEmptyCall(WarmParent& parent, CandidateKind kind,
                                           const std::filesystem::path& share_directory, const Lane& lane);

// GB/s of copying, reads and writes added, over buffers larger than any cache. On the lane.
double MeasureMemoryCeiling();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
