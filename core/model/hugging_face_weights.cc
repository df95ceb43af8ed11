#include "core/model/hugging_face_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/model/hugging_face_checks.h"

namespace warpsmith {
namespace {

absl::StatusOr<at::ScalarType> SupportedType(const TensorInfo& info) {
  RETURN_IF_ERROR(CheckTensorType(info));
  if (info.type == TensorType::kF32) return at::kFloat;
  return info.type == TensorType::kBF16 ? at::kBFloat16 : at::kHalf;
}

// Shares the bytes of the file where they are aligned, which the format does not promise; else
// copies them.
absl::StatusOr<at::Tensor> TensorOf(const TensorView& view) {
  ASSIGN_OR_RETURN(const at::ScalarType type, SupportedType(view.info));
  const at::TensorOptions options(type);
  const bool aligned = reinterpret_cast<uintptr_t>(view.bytes.data()) % TensorTypeBytes(view.info.type) == 0;
  if (aligned) return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.info.shape, options);
  at::Tensor copy = at::empty(view.info.shape, options);
  std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
  return copy;
}

absl::Status FailedInTorch(const std::string& what, const std::exception& error) {
  return absl::InternalError(absl::StrCat(what, " failed in LibTorch: ", Escape(error.what(), 2048)));
}

}  // namespace

absl::Status LoadHuggingFaceWeights(const std::filesystem::path& directory, Parameters& parameters) {
  ASSIGN_OR_RETURN(const TensorDirectory files, TensorDirectory::Open(directory));
  std::map<std::string, at::Tensor> tensors;
  try {
    for (const TensorView* view : files.tensors()) {
      ASSIGN_OR_RETURN(tensors[view->info.name], TensorOf(*view));
    }
    RETURN_IF_ERROR(parameters.FromHf(tensors));
    return CheckTiedHead(parameters.layout(), files);
  } catch (const std::exception& error) {
    return FailedInTorch(absl::StrCat("reading the weights of ", directory.string()), error);
  }
}

absl::StatusOr<TensorTypes> ReadTensorTypes(const std::filesystem::path& directory) {
  ASSIGN_OR_RETURN(const TensorDirectory files, TensorDirectory::Open(directory));
  TensorTypes types;
  for (const TensorView* view : files.tensors()) {
    RETURN_IF_ERROR(SupportedType(view->info).status());
    types[view->info.name] = view->info.type;
  }
  return types;
}

std::vector<TensorInfo> HuggingFaceTensors(const ParameterLayout& layout, const TensorTypes& types) {
  std::vector<TensorInfo> tensors;
  for (const HfTensorLayout& tensor : layout.hf_tensors()) {
    const auto found = types.find(tensor.name);
    tensors.push_back({.name = tensor.name,
                       .type = found == types.end() ? TensorType::kF32 : found->second,
                       .shape = tensor.shape});
  }
  return tensors;
}

TensorSource HuggingFaceSource(const Parameters& parameters) {
  return [&parameters](const TensorInfo& info, const ByteSink& sink) -> absl::Status {
    const std::vector<HfTensorLayout>& layouts = parameters.layout().hf_tensors();
    const auto layout = std::find_if(layouts.begin(), layouts.end(),
                                     [&](const HfTensorLayout& tensor) { return tensor.name == info.name; });
    if (layout == layouts.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has no tensor \"", Escape(info.name, 128), "\""));
    }
    ASSIGN_OR_RETURN(const at::ScalarType type, SupportedType(info));
    at::Tensor tensor;
    try {
      tensor = parameters.HfTensor(*layout, type);
      if (type == at::kHalf && !AllFiniteFloat16(tensor)) return parameters.CheckFitsFloat16(*layout);
    } catch (const std::exception& error) {
      return FailedInTorch(absl::StrCat("writing the tensor ", info.name), error);
    }
    return sink(
        {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.nbytes())});
  };
}

}  // namespace warpsmith
