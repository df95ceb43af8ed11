// How much of a kernel a device runs at once.
#ifndef WARPSMITH_CORE_KERNELS_MULTIPROCESSORS_H_
#define WARPSMITH_CORE_KERNELS_MULTIPROCESSORS_H_

#include <cuda_runtime_api.h>

namespace warpsmith {

// To `count`, those of the current device: 132 of an H100 or H200, fewer of a part of one.
inline cudaError_t CountMultiprocessors(int* count) {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  return error == cudaSuccess ? cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device) : error;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_MULTIPROCESSORS_H_
