// The weights of a Hugging Face checkpoint: into Parameters, and back in the element types in which
// they came.
#ifndef WARPSMITH_CORE_MODEL_HUGGING_FACE_WEIGHTS_H_
#define WARPSMITH_CORE_MODEL_HUGGING_FACE_WEIGHTS_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/tensor_info.h"
#include "core/model/parameters.h"

namespace warpsmith {

// Element type by the tensor's Hugging Face name.
using TensorTypes = std::map<std::string, TensorType>;

// Reads the safetensors of `directory` (one file, or shards with an index) into `parameters`,
// converting F32, BF16 and F16 to their dtype; float32 holds each of them exactly. The errors of
// TensorDirectory; INVALID_ARGUMENT for another element type, for tensors that are not the model's
// and for another head beside tied embeddings, the values being unspecified then; INTERNAL with
// LibTorch's message where it fails.
absl::Status LoadHuggingFaceWeights(const std::filesystem::path& directory, Parameters& parameters);

// The types of the tensors of `directory`; reads the files' headers alone. The same errors.
absl::StatusOr<TensorTypes> ReadTensorTypes(const std::filesystem::path& directory);

// The tensors of a checkpoint of `layout` for WriteHuggingFaceDirectory, each of its type in
// `types`, F32 where it has none there.
std::vector<TensorInfo> HuggingFaceTensors(const ParameterLayout& layout, const TensorTypes& types);

// Gives the values of `parameters`, rounded to the type that is asked for: exact where they are as
// they were read. A tensor at a time is in memory. For F16 the errors of
// Parameters::CheckFitsFloat16. `parameters` must outlive it.
TensorSource HuggingFaceSource(const Parameters& parameters);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_HUGGING_FACE_WEIGHTS_H_
