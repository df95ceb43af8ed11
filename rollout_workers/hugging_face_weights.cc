#include "rollout_workers/hugging_face_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/model/parameters.h"

namespace warpsmith {
namespace {

std::optional<at::ScalarType> ScalarTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return at::kFloat;
    case TensorType::kBF16:
      return at::kBFloat16;
    case TensorType::kF16:
      return at::kHalf;
    default:
      return std::nullopt;
  }
}

// A copy: the bytes of a file need not be aligned.
absl::StatusOr<at::Tensor> ToTensor(const TensorView& view) {
  const std::optional<at::ScalarType> type = ScalarTypeOf(view.info.type);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("Tensor \"", Escape(view.info.name, 128), "\" is of type ",
                                                   std::string(TensorTypeName(view.info.type)),
                                                   "; F32, BF16 and F16 can be read"));
  }
  at::Tensor tensor = at::empty(view.info.shape, at::TensorOptions(*type));
  std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

absl::StatusOr<Parameters> Read(const ModelConfig& config, const std::filesystem::path& directory) {
  ASSIGN_OR_RETURN(const TensorDirectory files, TensorDirectory::Open(directory));
  std::map<std::string, at::Tensor> tensors;
  for (const TensorView* const view : files.tensors()) {
    ASSIGN_OR_RETURN(tensors[view->info.name], ToTensor(*view));
  }
  Parameters parameters{ParameterLayout(config)};
  RETURN_IF_ERROR(parameters.FromHf(tensors));
  return parameters;
}

}  // namespace

absl::StatusOr<LoadedWeights> HuggingFaceWeights(const ModelConfig& config,
                                                 const std::filesystem::path& directory) {
  try {
    ASSIGN_OR_RETURN(Parameters parameters, Read(config, directory));
    return InitialWeights(std::move(parameters));
  } catch (const std::exception& error) {  // LibTorch's, when memory is short
    return absl::ResourceExhaustedError(
        absl::StrCat("No room for the weights of ", directory.string(), ": ", Escape(error.what(), 256)));
  }
}

}  // namespace warpsmith
