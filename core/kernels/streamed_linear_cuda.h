// linear.h on a Hopper GPU by a kernel of ours whose rows do not depend on each other: the batch-invariant mode. Of few
// rows the weights stream through shared memory at the speed of the device's memory.
#ifndef WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_
#define WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/linear.h"
#include "core/kernels/linear_cuda.h"

namespace warpsmith {

// How many parts the sum over depth is cut into, for few rows each with a block of its own: 1, 2, 4 or 8. A function of
// the shape alone.
int DepthParts(const LinearShape& shape);

// A row's bits depend on that row and the shape alone, whatever the number of rows: sums run over depth in steps of 16
// within a part, and parts are added in their order. Any number of rows; depth is a multiple of 8, columns of 8 in
// bfloat16 and of 4 in float32. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for other sizes, cudaErrorNotSupported where the device is no Hopper.
cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STREAMED_LINEAR_CUDA_H_
