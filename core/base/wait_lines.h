// Lines of the log for a process that waits: for what, since when, and when it gives up.
#ifndef WARPSMITH_CORE_BASE_WAIT_LINES_H_
#define WARPSMITH_CORE_BASE_WAIT_LINES_H_

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/log.h"

namespace warpsmith {

struct WaitLineOptions {
  absl::Duration interval = absl::Seconds(10);  // from one line to the next
  std::function<void(std::string_view)> say = LogInfo;
};

// "1m5s": in whole seconds, or where it is less than one in milliseconds.
std::string SecondsText(absl::Duration duration);

// "waiting for WHAT, for 20s of at most 5m". An infinite `timeout` is left out.
std::string WaitLine(std::string_view what, absl::Duration waited, absl::Duration timeout);

// Says a WaitLine every `options.interval` for as long as it lives, of a call that blocks its caller. Owns the thread
// "ws-wait"; `options.say` is called there.
class WaitLines {
 public:
  WaitLines(std::string what, absl::Duration timeout, WaitLineOptions options = {});
  WaitLines(const WaitLines&) = delete;
  WaitLines& operator=(const WaitLines&) = delete;
  ~WaitLines();

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string what_;
  const absl::Duration timeout_;
  const WaitLineOptions options_;
  absl::Mutex mutex_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_WAIT_LINES_H_
