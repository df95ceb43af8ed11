#include "trainer/initial_weights.h"

#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <exception>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/tensor_directory.h"

namespace warpsmith {
namespace {

// A tensor that shares the bytes of the file.
absl::StatusOr<at::Tensor> TensorOf(const TensorView& view) {
  if (view.info.type != TensorType::kF32 && view.info.type != TensorType::kBF16) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", view.info.name, " is neither F32 nor BF16"));
  }
  const at::ScalarType dtype = view.info.type == TensorType::kF32 ? at::kFloat : at::kBFloat16;
  return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.info.shape, at::TensorOptions(dtype));
}

}  // namespace

absl::Status LoadHuggingFaceWeights(const std::filesystem::path& directory, Parameters& parameters) {
  ASSIGN_OR_RETURN(const TensorDirectory directory_tensors, TensorDirectory::Open(directory));
  std::map<std::string, at::Tensor> tensors;
  try {
    for (const TensorView* view : directory_tensors.tensors()) {
      ASSIGN_OR_RETURN(tensors[view->info.name], TensorOf(*view));
    }
    return parameters.FromHf(tensors);
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("loading weights failed in LibTorch: ", Escape(error.what(), 2048)));
  }
}

}  // namespace warpsmith
