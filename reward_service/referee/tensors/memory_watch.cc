#include "reward_service/referee/tensors/memory_watch.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kClosingSeenAfter = absl::Seconds(1);
// Of the time, at most one part in so many and one is spent with looks: beside programs that ask the driver for
// memory one takes 8 ms on the average, where it takes 10 us alone (an H100).
constexpr int kPausePerLook = 9;

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
      pause = std::max(pause, kPausePerLook * (absl::Now() - since));
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), std::min(pause, kClosingSeenAfter))) return;
  }
}

}  // namespace warpsmith
