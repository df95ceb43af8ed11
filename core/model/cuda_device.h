// A GPU of this host by its index.
#ifndef WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_
#define WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpsmith {

struct CudaDevice {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-" and 32 hexadecimal digits in five groups, as nvidia-smi writes it
};

// Makes GPU `index`, counted as CUDA does, the calling thread's current one. Errors begin with `user`:
// FAILED_PRECONDITION where there is no driver, or one older than this build's CUDA, no GPU of this index, or one for
// which the kernels are not built.
absl::StatusOr<CudaDevice> UseCudaDevice(int index, std::string_view user);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_
