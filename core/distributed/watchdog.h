// Ends an operation that has outlived its deadline.
#ifndef WARPSMITH_CORE_DISTRIBUTED_WATCHDOG_H_
#define WARPSMITH_CORE_DISTRIBUTED_WATCHDOG_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace warpsmith {

// Watches one operation at a time on a thread of its own. Arm and Disarm are called by the operation's
// thread.
class Watchdog {
 public:
  // `on_expiry` runs on the watchdog's thread, at most once for each Arm, and must not call Disarm.
  explicit Watchdog(std::function<void()> on_expiry);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void Arm(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // After it returns, `on_expiry` is not running and will not run before the next Arm.
  void Disarm() ABSL_LOCKS_EXCLUDED(mutex_);

  // Brings the deadline forward to now, if the watchdog is armed. Any thread; does not wait for `on_expiry`.
  void Expire() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void()> on_expiry_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool expiring_ ABSL_GUARDED_BY(mutex_) = false;  // `on_expiry` is running
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_WATCHDOG_H_
