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
    changed_.SignalAll();
  }
  thread_.join();
}

void Watchdog::Arm(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = deadline;
  changed_.SignalAll();
}

void Watchdog::Disarm() {
  absl::MutexLock lock(&mutex_);
  deadline_ = absl::InfiniteFuture();
  while (expiring_) changed_.Wait(&mutex_);
}

void Watchdog::Expire() {
  absl::MutexLock lock(&mutex_);
  if (deadline_ == absl::InfiniteFuture()) return;
  deadline_ = absl::InfinitePast();
  changed_.SignalAll();
}

void Watchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    if (absl::Now() < deadline_) {
      changed_.WaitWithDeadline(&mutex_, deadline_);
      continue;
    }
    deadline_ = absl::InfiniteFuture();
    expiring_ = true;
    mutex_.Unlock();  // so that Expire never waits for what `on_expiry` does
    on_expiry_();
    mutex_.Lock();
    expiring_ = false;
    changed_.SignalAll();
  }
}

}  // namespace warpsmith
