// One allocation on a GPU.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_MEMORY_H_
#define WARPSMITH_CORE_MODEL_DEVICE_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"
#include "core/model/event_arrival_cuda.h"

namespace warpsmith {

// Movable; freed with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ != nullptr) cudaFree(memory_);
  }

  // Of the current device, all zeros, also to streams that do not wait for the default one. RESOURCE_EXHAUSTED;
  // DEADLINE_EXCEEDED: the device has not ended what it has to do, and the memory is not given back.
  static absl::StatusOr<DeviceMemory> Zeros(int64_t bytes,
                                            absl::Time deadline = absl::Now() + kShortWorkTimeout) {
    DeviceMemory allocated;
    RETURN_IF_ERROR(
        CudaStatus(cudaMalloc(&allocated.memory_, bytes), absl::StrCat("cudaMalloc of ", bytes, " bytes")));
    RETURN_IF_ERROR(CudaStatus(cudaMemset(allocated.memory_, 0, bytes), "cudaMemset"));
    absl::Status cleared = AwaitStream(nullptr, deadline);
    if (!cleared.ok()) {
      allocated.Keep();
      return cleared;
    }
    return allocated;
  }

  // Never frees it: the device may use it for good.
  void Keep() { memory_ = nullptr; }

  std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_MEMORY_H_
