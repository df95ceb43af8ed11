// Who sees that a GPU's memory was scarce for a while, though it is not any more.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_MEMORY_WATCH_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_MEMORY_WATCH_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {

// Has the store look at its memory every kPause while several share its turn, and a tenth as often where the
// driver keeps a look waiting, and others with it. A program can hold all memory within a call and give it back before
// anybody else asks: an unchecked allocation beside it fails, and its outputs are wrong. The driver takes milliseconds
// to give and take what would matter, which is a quarter of the GPU's memory, so it is seen. Not watched is whoever has
// the device alone, on whose clock a look would be.
class MemoryWatch {
 public:
  static constexpr absl::Duration kPause = absl::Milliseconds(5);

  // Both outlive it. `begin` is called first on its thread: to leave the lane's cores.
  MemoryWatch(GpuStore* store, std::function<void()> begin);
  ~MemoryWatch();  // within a second
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  GpuStore* const store_;
  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_MEMORY_WATCH_H_
