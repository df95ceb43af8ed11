// One piece of a GPU's memory, handed out from front to back.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_DEVICE_ARENA_H_
#define WARPSMITH_CORE_MODEL_TRAINING_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/model/device_memory.h"

namespace warpsmith {

// Gives room to arrays that are needed at the same time. They are placed twice, in the same order: the first time finds
// the size out, the second time gives the arrays their addresses.
class DeviceArena {
 public:
  // Runs `place`, which calls Take for each array, and keeps the memory if it is large enough. Work that uses the
  // former arrays is waited for where it is not. RESOURCE_EXHAUSTED names the bytes.
  template <typename Place>
  absl::Status Arrange(Place place) {
    base_ = nullptr;
    used_ = 0;
    place();
    if (used_ > bytes_) {
      memory_ = DeviceMemory();
      bytes_ = 0;
      ASSIGN_OR_RETURN(memory_, DeviceMemory::Zeros(used_));
      bytes_ = used_;
    }
    base_ = memory_.get();
    used_ = 0;
    place();
    return absl::OkStatus();
  }

  // Returns room for `count` elements, aligned to 256 bytes; null while the size is found out.
  template <typename U>
  U* Take(int64_t count) {
    std::byte* const at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * static_cast<int64_t>(sizeof(U)) + 255) / 256 * 256;
    return reinterpret_cast<U*>(at);
  }

 private:
  DeviceMemory memory_;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_DEVICE_ARENA_H_
