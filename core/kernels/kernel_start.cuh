// How kernels start beside the one before: CUDA's programmatic dependent launch. Compute capability 9.0 and later.
#ifndef WARPSMITH_CORE_KERNELS_KERNEL_START_CUH_
#define WARPSMITH_CORE_KERNELS_KERNEL_START_CUH_

#include <cuda_runtime.h>

#include <utility>

#include "core/kernels/kernel_start.h"

namespace warpsmith {

// The next kernel may start once a thread of each block has called this. By then all blocks run, so that blocks of the
// next kernel take no place from them.
__device__ inline void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Until all kernels before have ended and what they wrote can be read. Every thread calls it before it reads what a
// kernel may have written, and before it writes. Again it costs nothing.
__device__ inline void WaitForFormer() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// A launch of `kernel`, which waits for the former, in clusters of `cluster_blocks` blocks along x. Returns its error.
template <typename... Parameters, typename... Arguments>
cudaError_t StartClusters(KernelStart start, void (*kernel)(Parameters...), dim3 blocks,
                          unsigned cluster_blocks, unsigned threads, size_t shared_bytes, cudaStream_t stream,
                          Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (start == KernelStart::kBesideFormer) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster_blocks > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {cluster_blocks, 1, 1};
  }
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Likewise, of blocks alone.
template <typename... Parameters, typename... Arguments>
cudaError_t StartKernel(KernelStart start, void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                        size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  return StartClusters(start, kernel, blocks, 1, threads, shared_bytes, stream,
                       std::forward<Arguments>(arguments)...);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_KERNEL_START_CUH_
