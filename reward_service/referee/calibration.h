// What an empty candidate costs on this lane, and how fast its memory is.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "reward_service/referee/jail.h"
#include "reward_service/referee/warm_parent.h"

namespace warpsmith {

// Median microseconds of a call that does nothing, from release to confirmed stop, by the same path as any candidate.
// On the thread that holds the lane.
absl::StatusOr<double> MeasureEmptyCallUs(WarmParent& parent, CandidateKind kind,
                                          const std::filesystem::path& share_directory, const Lane& lane);

// GB/s of copying, reads and writes added, over buffers larger than any cache. On the lane.
double MeasureMemoryCeiling();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CALIBRATION_H_
