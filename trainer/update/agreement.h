// What the ranks of a run decide together, once, before they do anything.
#ifndef WARPSMITH_TRAINER_UPDATE_AGREEMENT_H_
#define WARPSMITH_TRAINER_UPDATE_AGREEMENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/control_plane.h"

namespace warpsmith {

// Rank 0's text, or rank 0's error, on every rank. `own` is read on rank 0 alone. Also the errors of
// ControlPlane::Broadcast.
absl::StatusOr<std::string> ShareText(ControlPlane& control, absl::StatusOr<std::string> own);

// Returns the largest `own` of all ranks, on every rank. The errors of ControlPlane::AllGather.
absl::StatusOr<int> LargestOverRanks(ControlPlane& control, int own);

// OK when every rank brings OK. Else a rank's own error, or where it has none the first rank's that
// has one, so that all stop and each says why. Also the errors of ControlPlane::AllGather.
absl::Status ShareStatus(ControlPlane& control, const absl::Status& own);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_AGREEMENT_H_
