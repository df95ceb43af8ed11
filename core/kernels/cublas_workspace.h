// Memory that a product of cuBLASLt works in.
#ifndef WARPSMITH_CORE_KERNELS_CUBLAS_WORKSPACE_H_
#define WARPSMITH_CORE_KERNELS_CUBLAS_WORKSPACE_H_

#include <cstddef>

namespace warpsmith {

// Device memory that the product may use; 32 MiB is what cuBLAS advises on Hopper.
struct CublasWorkspace {
  void* memory;
  size_t bytes;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_CUBLAS_WORKSPACE_H_
