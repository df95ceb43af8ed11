// Products and norms of a training pass on a GPU, with errors that say what they were for.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CUDA_CALLS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CUDA_CALLS_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/training/matrix_product_cuda.h"
#include "core/model/cuda_status.h"

namespace warpsmith {

// See MatrixProducts::Launch. INTERNAL with `what`, the sizes and cuBLASLt's message.
template <typename T>
absl::Status Multiply(MatrixProducts<T>& products, const MatrixProduct& product, const T* a, const T* b,
                      void* c, std::string_view what, cudaStream_t stream, const void* addend = nullptr) {
  const cublasStatus_t status = products.Launch(product, a, b, c, stream, addend);
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return CublasStatus(status, absl::StrCat("the product for ", AbslView(what), ", ", product.rows, " x ",
                                           product.columns, " x ", product.depth));
}

// Writes y [rows, size], the RMSNorm of x.
template <typename T>
absl::Status Normalise(const T* x, const T* weight, int64_t rows, int64_t size, double eps, T* y,
                       cudaStream_t stream) {
  return CudaStatus(LaunchResidualNorm<T>({rows, size, static_cast<float>(eps), const_cast<T*>(x),
                                           /*delta=*/nullptr, weight, y},
                                          stream),
                    "a norm");
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CUDA_CALLS_H_
