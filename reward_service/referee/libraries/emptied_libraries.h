// A candidate's compiled libraries with kernels that do nothing: what is right with them was done by other libraries.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_EMPTIED_LIBRARIES_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_EMPTIED_LIBRARIES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/measure/judge_request.h"

namespace warpsmith {

// Returns copies of a native program's library, or of a Python program's extensions in their order, in memory files
// that cannot be written. Every kernel returns at once; all else is as it was. Code of a CPU stays as it is. Errors:
// INTERNAL where a library cannot be read, or is larger than compilers may write.
absl::StatusOr<std::vector<UniqueFd>> EmptiedLibraries(const JudgeRequest& request);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_EMPTIED_LIBRARIES_H_
