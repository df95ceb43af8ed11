// CUDA's and cuBLASLt's errors as statuses.
#ifndef WARPSMITH_CORE_MODEL_CUDA_STATUS_H_
#define WARPSMITH_CORE_MODEL_CUDA_STATUS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"

namespace warpsmith {

// INTERNAL "<what>: <name>, <text>"; RESOURCE_EXHAUSTED where memory is what lacks. CUDA forgets the error, which the
// next launch of this thread would report as its own.
inline absl::Status CudaStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const absl::StatusCode code =
      error == cudaErrorMemoryAllocation ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal;
  return absl::Status(
      code, absl::StrCat(AbslView(what), ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error)));
}

inline absl::Status CublasStatus(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(AbslView(what), ": ", cublasLtGetStatusName(status), ", ",
                                          cublasLtGetStatusString(status)));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_CUDA_STATUS_H_
