// Whether the tensors of a Hugging Face checkpoint are those of a model: names, shapes, element types. No LibTorch, so
// that every way of reading weights refuses the same checkpoints in the same words.
#ifndef WARPSMITH_CORE_MODEL_HUGGING_FACE_CHECKS_H_
#define WARPSMITH_CORE_MODEL_HUGGING_FACE_CHECKS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/checkpoint/tensor_info.h"
#include "core/kernels/device_dtype.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// INVALID_ARGUMENT for a name that the architecture does not have. "lm_head.weight" of tied embeddings is allowed: see
// CheckTiedHead.
absl::Status CheckTensorNames(const ParameterLayout& layout, const std::vector<std::string>& names);

// INVALID_ARGUMENT for all types but F32, BF16 and F16.
absl::Status CheckTensorType(const TensorInfo& info);

// INVALID_ARGUMENT for another shape than the layout's.
absl::Status CheckTensorShape(const HfTensorLayout& tensor, absl::Span<const int64_t> shape);

// Checks that the head of tied embeddings, where the files have one, is the embedding: INVALID_ARGUMENT for another
// shape or value, the types aside. transformers 5 computes with such a head, and with tied embeddings none is computed.
absl::Status CheckTiedHead(const ParameterLayout& layout, const TensorDirectory& files);

// INVALID_ARGUMENT: the checkpoint has no such tensor; or its values are infinite or NaN.
absl::Status MissingTensor(const ParameterLayout& layout, const HfTensorLayout& tensor);
absl::Status NotFiniteTensor(const HfTensorLayout& tensor);

// The tensor of each of layout.hf_tensors(), after all checks above but that of values.
absl::StatusOr<std::vector<const TensorView*>> FindModelTensors(const ParameterLayout& layout,
                                                                const TensorDirectory& files);

// What a GPU best stores of the checkpoint in `directory`: float16 where all its tensors are F16, which bfloat16 would
// round; else bfloat16, which has the range of float32. Also where nothing can be read: loading reports why.
DeviceDtype DtypeOfCheckpoint(const std::filesystem::path& directory);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_HUGGING_FACE_CHECKS_H_
