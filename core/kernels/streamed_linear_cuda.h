// linear.h on a Hopper GPU by kernels of ours whose rows do not depend on each other: the batch-invariant mode. Of few
// rows, up to 64 or 32 (HasTiles in tile_plan.h), the weights stream through shared memory at the speed of the device's
// memory; more are in tiled_linear_cuda.h.
#ifndef WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_
#define WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/linear.h"
#include "core/kernels/linear_cuda.h"

namespace warpsmith {

// A row's bits depend on that row and the shape alone, whatever the number of rows: sums run over depth in steps of 16
// within a part, and parts are added in their order. Any number of rows; depth is a multiple of 8, columns of 8 in
// T, __nv_bfloat16 or __half, and of 4 in float32. Launches on `stream`, does not synchronise; returns the launch's
// error, cudaErrorInvalidValue for other sizes, cudaErrorNotSupported where the device is no Hopper. Constant beside
// the former kernel: the weights.
template <typename T = __nv_bfloat16>
cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                                 cudaStream_t stream, KernelStart start = KernelStart::kAfterFormer,
                                 NextStart next = NextStart::kAfterLoads);

// SwiGLU (swiglu.h) of such a product, with the bits that the two have one after the other: y is [rows, columns / 2].
// Also cudaErrorInvalidValue for a bias, a residual, float32, and columns that are no whole blocks of gate and up.
template <typename T = __nv_bfloat16>
cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                                 cudaStream_t stream, KernelStart start = KernelStart::kAfterFormer,
                                 NextStart next = NextStart::kAfterLoads);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_
