// What the ranks of a run decide together, once, before they do anything.
#ifndef WARPSMITH_TRAINER_AGREEMENT_H_
#define WARPSMITH_TRAINER_AGREEMENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"

namespace warpsmith {

// Rank 0's text, or rank 0's error, on every rank. `own` is read on rank 0 alone.
absl::StatusOr<std::string> ShareText(Communicator& communicator, absl::StatusOr<std::string> own);

// OK when every rank brings OK. Else a rank's own error, or where it has none the first rank's that
// has one, so that all stop and each says why.
absl::Status ShareStatus(Communicator& communicator, const absl::Status& own);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_AGREEMENT_H_
