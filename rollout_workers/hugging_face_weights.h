// Weights from the safetensors of a Hugging Face directory.
#ifndef WARPSMITH_ROLLOUT_WORKERS_HUGGING_FACE_WEIGHTS_H_
#define WARPSMITH_ROLLOUT_WORKERS_HUGGING_FACE_WEIGHTS_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// Version 0, converted to float32. The errors of TensorDirectory; INVALID_ARGUMENT for tensors that are not
// those of `config`, or of another type than F32, BF16 or F16.
absl::StatusOr<LoadedWeights> HuggingFaceWeights(const ModelConfig& config,
                                                 const std::filesystem::path& directory);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_HUGGING_FACE_WEIGHTS_H_
