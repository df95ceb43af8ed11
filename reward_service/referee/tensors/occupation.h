// Work that keeps a GPU from doing anybody else's for a while, and tells whether it did.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OCCUPATION_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OCCUPATION_H_

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/cuda/gpu_memory.h"

namespace warpsmith {

// A GPU does the work of one process at a time, but for copies to and from the host. Another's in between makes this
// one's longer by 140 us at least (one H100). For a thread that has the context.
class Occupation {
 public:
  // Both outlive it; nobody else uses `filler`.
  Occupation(const cuda::GpuContext* context, cuda::GpuMemory* filler) : context_(context), filler_(filler) {}

  // With nobody else on the GPU: how often `filler` must be filled for some 400 us, which is longer than nearly every
  // process takes until it is ready when it is continued.
  absl::Status Learn();
  // Asks for that work, and does not wait.
  absl::Status Begin();
  // Waits for it: how much longer it took than the shortest of the last ones [us], for a GPU becomes slower and faster
  // as it warms up. Of a GPU that never ends it this has no bound: the service ends a referee that does not answer.
  absl::StatusOr<double> Await();

 private:
  absl::StatusOr<double> Take();     // how long it takes from Begin() on
  absl::StatusOr<double> Measure();  // the same of several, as a median

  const cuda::GpuContext* const context_;
  cuda::GpuMemory* const filler_;
  int num_fillings_ = 1;
  // Of the last ones, each in the place of the oldest. Whoever has this take longer has no other one's be shorter.
  std::array<double, 32> last_us_{};
  size_t next_ = 0;
  absl::Time begin_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_OCCUPATION_H_
