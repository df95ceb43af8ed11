// linear_gelu.h on a GPU: one product of cuBLASLt whose epilogue adds the bias and applies GELU, so that no
// intermediate is written to memory.
#ifndef WARPSMITH_CORE_KERNELS_LINEAR_GELU_CUDA_H_
#define WARPSMITH_CORE_KERNELS_LINEAR_GELU_CUDA_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "core/kernels/cublas_workspace.h"
#include "core/kernels/linear_gelu.h"

namespace warpsmith {

// Float32 in and out, accumulated in float32 without TF32. All pointers are device memory, aligned to 16
// bytes. Launches on `stream`, does not synchronise. `workspace` must not be in use by another stream.
// CUBLAS_STATUS_NOT_SUPPORTED when cuBLASLt has no algorithm for the shape.
cublasStatus_t LaunchLinearGelu(cublasLtHandle_t handle, const LinearGeluShape& shape, const float* x,
                                const float* weight, const float* bias, float* y, CublasWorkspace workspace,
                                cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_LINEAR_GELU_CUDA_H_
