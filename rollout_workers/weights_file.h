// Weights in a file that a trainer published: the flat buffers of the layout, in float32, bfloat16 or float16.
//
// Includes nothing of LibTorch.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_FILE_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_FILE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// What the weights become in memory: float32, as the CPU's kernels need them, or as the file has them.
enum class DtypeInMemory { kFloat32, kAsInFile };

// Reads the file on several threads and checks all of it before any is taken: layout (FAILED_PRECONDITION if it is
// another model's), dtype, names, sizes and place in the file (INVALID_ARGUMENT), and the checksum, or else the
// SHA-256, of every buffer (DATA_LOSS). NOT_FOUND without the file; DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED without room
// for them.
absl::StatusOr<LoadedWeights> LoadWeightsFile(const ModelConfig& config, const OfferedWeights& published,
                                              DtypeInMemory dtype, absl::Time deadline);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_FILE_H_
