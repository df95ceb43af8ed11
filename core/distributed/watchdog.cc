#include "core/distributed/watchdog.h"

#include <pthread.h>

#include <utility>

#include "absl/time/clock.h"

namespace warpsmith {

Watchdog::Watchdog(std::function<void()> on_expiry)
    : on_expiry_(std::move(on_expiry)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void Watchdog::Arm(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = deadline;
  changed_.Signal();
}

void Watchdog::Disarm() {
  absl::MutexLock lock(&mutex_);
  deadline_ = absl::InfiniteFuture();
}

void Watchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    if (absl::Now() >= deadline_) {
      deadline_ = absl::InfiniteFuture();
      on_expiry_();  // under the lock, so that Disarm waits for it
      continue;
    }
    changed_.WaitWithDeadline(&mutex_, deadline_);
  }
}

}  // namespace warpsmith
