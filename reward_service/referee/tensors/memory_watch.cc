#include "reward_service/referee/tensors/memory_watch.h"

#include <pthread.h>

#include <utility>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kClosingSeenAfter = absl::Seconds(1);

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
    if (store_->turn()->AwaitCompany(absl::Now() + kClosingSeenAfter)) store_->LookAtMemory();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), kPause)) return;
  }
}

}  // namespace warpsmith
