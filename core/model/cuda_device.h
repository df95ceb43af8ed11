// A GPU of this host by its index.
#ifndef WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_
#define WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpsmith {

struct CudaDevice {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-" and 32 hexadecimal digits in five groups, as nvidia-smi writes it
  // Dense products in bfloat16, floating-point operations a second: what NVIDIA's datasheets say of an SXM module.
  double peak_flops = 0;
  int64_t total_memory = 0;  // bytes
};

// Returns the bytes of the current GPU's memory that no process has taken. INTERNAL with CUDA's error.
absl::StatusOr<int64_t> FreeDeviceMemory();

// Makes GPU `index`, counted as CUDA does, the calling thread's current one. Errors begin with `user`:
// FAILED_PRECONDITION where there is no driver, or one older than this build's CUDA, no GPU of this index, or one for
// which the kernels are not built.
absl::StatusOr<CudaDevice> UseCudaDevice(int index, std::string_view user);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_CUDA_DEVICE_H_
