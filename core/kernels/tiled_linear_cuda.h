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

// Whether a product stores its sums, or SwiGLU of them.
enum class LinearGate { kNone, kSwiGlu };

// T is __nv_bfloat16 or __half. Contract of LaunchStreamedLinear, or with a gate of LaunchStreamedSwiGlu, whose sizes
// the caller has checked. Any `plan` gives the same bits; cudaErrorInvalidValue for one whose tile_rows no kernel is
// built for.
template <typename T = __nv_bfloat16>
cudaError_t LaunchTiledLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                              LinearGate gate, const TilePlan& plan, cudaStream_t stream, KernelStart start);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUDA_H_
