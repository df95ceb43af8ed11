// Memory of a GPU that can be given back and taken again at the same address, so that a captured graph stays valid.
#ifndef WARPSMITH_CORE_MODEL_RESIDENT_MEMORY_CUDA_H_
#define WARPSMITH_CORE_MODEL_RESIDENT_MEMORY_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// Owns a range of addresses, and the memory behind it while it is resident. One thread at a time.
class ResidentMemory {
 public:
  // Addresses for `bytes` on `device`, which is the current one, without memory. FAILED_PRECONDITION where the driver
  // has no virtual memory management; INTERNAL with the driver's error.
  static absl::StatusOr<std::unique_ptr<ResidentMemory>> Reserve(int device, int64_t bytes);
  ~ResidentMemory();
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  // Takes memory, all zeros; nothing where it is resident. RESOURCE_EXHAUSTED when the GPU has too little.
  absl::Status Allocate();
  // Gives it back, after all work on the device; nothing where it is not resident.
  void Free();

  // The same address always; its memory is there while resident() is true.
  std::byte* get() const;
  bool resident() const;

 private:
  struct State;
  explicit ResidentMemory(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_RESIDENT_MEMORY_CUDA_H_
