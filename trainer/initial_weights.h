// The weights a run starts from.
#ifndef WARPSMITH_TRAINER_INITIAL_WEIGHTS_H_
#define WARPSMITH_TRAINER_INITIAL_WEIGHTS_H_

#include <filesystem>

#include "absl/status/status.h"
#include "core/model/parameters.h"

namespace warpsmith {

// Reads the safetensors of a Hugging Face directory (one file, or shards with an index) into `parameters`,
// float32 or bfloat16. The errors of the reader; INVALID_ARGUMENT for tensors that are not the model's.
absl::Status LoadHuggingFaceWeights(const std::filesystem::path& directory, Parameters& parameters);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_INITIAL_WEIGHTS_H_
