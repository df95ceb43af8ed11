// The products of streamed_linear_cuda.h for many rows, with the same bits: blocks side by side share tiles of weights
// and of x, and each tile's sums are made by one block.
#ifndef WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/linear.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/tile_plan.h"

namespace warpsmith {

// T is __nv_bfloat16 or __half. Contract of LaunchStreamedLinear, or for kSwiGlu of LaunchStreamedSwiGlu; the caller
// has checked sizes, and `kind` is kFloat32 where the shape's output is. Any `plan` gives the same bits;
// cudaErrorInvalidValue for one that no kernel is built for (IsBuilt).
template <typename T = __nv_bfloat16>
cudaError_t LaunchTiledLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                              OutputKind kind, const TilePlan& plan, cudaStream_t stream, KernelStart start);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUDA_H_
