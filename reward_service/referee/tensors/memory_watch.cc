#include "reward_service/referee/tensors/memory_watch.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kClosingSeenAfter = absl::Seconds(1);
// Beside programs that ask the driver for memory a look takes 8 ms on the average, and 150 at worst, where it takes
// 10 us alone (an H100): a tenth of the time is spent so, and more where looks would become too rare.
constexpr int kPausePerLook = 9;
constexpr absl::Duration kPauseMax = absl::Milliseconds(50);

}  // namespace

MemoryWatch::MemoryWatch(GpuStore* store, std::function<void()> begin)
    : store_(store), thread_([this, begin = std::move(begin)] {
        pthread_setname_np(pthread_self(), "memory-watch");
        begin();
        Watch();
      }) {}

MemoryWatch::~MemoryWatch() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

void MemoryWatch::Watch() {
  for (;;) {
    absl::Duration pause = kPause;
    if (store_->turn()->AwaitCompany(absl::Now() + kClosingSeenAfter)) {
      const absl::Time since = absl::Now();
      store_->LookAtMemory();
      pause = std::clamp(kPausePerLook * (absl::Now() - since), kPause, kPauseMax);
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), pause)) return;
  }
}

}  // namespace warpsmith
