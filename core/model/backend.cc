#include "core/model/backend.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

std::string Names(const std::vector<at::ScalarType>& dtypes) {
  return absl::StrJoin(dtypes, " or ",
                       [](std::string* out, at::ScalarType dtype) { out->append(c10::toString(dtype)); });
}

}  // namespace

absl::Status CheckBackend(const ModelConfig& config, Backend backend, Placement placement,
                          const std::vector<at::ScalarType>& kernel_dtypes) {
  RETURN_IF_ERROR(ValidateModelConfig(config));
  const bool on_kernels = backend == Backend::kKernels;
  const std::vector<at::ScalarType> operator_dtypes = {at::kFloat, at::kDouble, at::kBFloat16};
  const std::vector<at::ScalarType>& dtypes = on_kernels ? kernel_dtypes : operator_dtypes;
  const bool has_dtype = std::count(dtypes.begin(), dtypes.end(), placement.dtype) > 0;
  if (has_dtype && (placement.device.is_cpu() || !on_kernels)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "model: the ", on_kernels ? "kernels" : "operators", " do not compute ", c10::toString(placement.dtype),
      " on ", placement.device.str(), ", but ", Names(dtypes), " on ",
      on_kernels ? "cpu: convert the weights, or name the operators" : "any device: convert the weights"));
}

}  // namespace warpsmith
