// matrix_product.h on a GPU, by cuBLASLt.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_CUDA_H_

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <map>

#include "core/kernels/cublas_workspace.h"
#include "core/kernels/training/matrix_product.h"

namespace warpsmith {

// Takes cuBLASLt's first proposal for each product, so the same product has the same bits in every process of the same
// GPU and library. Sums over parts of the depth are added in float32.
//
// T is __nv_bfloat16 or float; float32 is multiplied as float32, never as TF32. Not thread-safe; of one device and one
// stream at a time, for the workspace is shared.
template <typename T>
class MatrixProducts {
 public:
  // The handle and the workspace outlive this.
  MatrixProducts(cublasLtHandle_t handle, CublasWorkspace workspace)
      : handle_(handle), workspace_(workspace) {}

  // Launches on `stream`, does not synchronise; nothing happens where c is empty. All pointers are device memory,
  // aligned to 16 bytes. `addend` takes the place of c in the sum where the product adds; null: c itself. Returns
  // CUBLAS_STATUS_NOT_SUPPORTED where cuBLASLt has no algorithm.
  cublasStatus_t Launch(const MatrixProduct& product, const T* a, const T* b, void* c, cudaStream_t stream,
                        const void* addend = nullptr);

 private:
  cublasLtHandle_t handle_;
  CublasWorkspace workspace_;
  std::map<MatrixProduct, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_CUDA_H_
