// Memory of a GPU that other processes of the host map, by a file descriptor.
#ifndef WARPSMITH_CORE_MODEL_SHARED_MEMORY_CUDA_H_
#define WARPSMITH_CORE_MODEL_SHARED_MEMORY_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// The memory lives as long as a process maps it or holds a descriptor of it. What the device does with it must have
// ended before this is destroyed. One thread at a time.
class SharedMemory {
 public:
  // Takes at least `bytes` on `device`, which is the current one; what is in them is not said. RESOURCE_EXHAUSTED;
  // FAILED_PRECONDITION where the driver has no virtual memory management; INTERNAL with the driver's error.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Allocate(int device, int64_t bytes);

  // Maps what another process took by the same number of bytes, for `device` of this one: the same GPU or one that
  // reaches it. INVALID_ARGUMENT: the descriptor is of something else, or of less memory; INTERNAL likewise.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Map(int device, const UniqueFd& descriptor,
                                                           int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  absl::StatusOr<UniqueFd> Export() const;

  std::byte* get() const;

 private:
  struct State;
  explicit SharedMemory(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_SHARED_MEMORY_CUDA_H_
