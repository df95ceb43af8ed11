// When to try a failed call again.
#ifndef WARPSMITH_CORE_RPC_RETRY_POLICY_H_
#define WARPSMITH_CORE_RPC_RETRY_POLICY_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace warpsmith {

struct RetryOptions {
  // The first one included; those that found the server full do not count, and only the time bounds them.
  int num_attempts_max = 8;
  absl::Duration elapsed_max = absl::Minutes(2);  // no wait ends later than this after the first attempt
  absl::Duration delay_initial = absl::Milliseconds(100);
  absl::Duration delay_max = absl::Seconds(10);  // bounds the growth; a server's RetryInfo may ask for more
  double growth = 2.0;
  double jitter = 0.2;  // a delay is spread over [1 - jitter, 1 + jitter] of itself
  uint64_t seed = 0;    // of the spread; give each client its own
};

// What has become of a call's attempts.
struct RetryCounts {
  int num_failed = 0;
  // Back-pressure: RESOURCE_EXHAUSTED with RetryInfo. The server works, and has no room yet.
  int num_refused = 0;

  // Adds an attempt that ended in `status`, which is not OK.
  void Add(const absl::Status& status);
};

// A pure function of its arguments; safe to share between threads.
//
// Tried again: UNAVAILABLE, and whatever carries google.rpc.RetryInfo, whose delay is then the least to wait.
// All else is final, RESOURCE_EXHAUSTED without RetryInfo included. The caller sees to it that the call may
// be repeated.
class RetryPolicy {
 public:
  explicit RetryPolicy(RetryOptions options) : options_(options) {}

  // How long to wait before the next attempt, given that the last of those counted, this one included, ended
  // in `status`, `elapsed` after the first began. Nothing: give up.
  std::optional<absl::Duration> NextDelay(const RetryCounts& counts, const absl::Status& status,
                                          absl::Duration elapsed) const;

 private:
  RetryOptions options_;
};

// Time as CallWithRetries sees it; a test brings its own.
class RetryClock {
 public:
  virtual ~RetryClock() = default;

  virtual absl::Time Now() = 0;

  // False if the wait was cut short because the caller is to stop.
  virtual bool Wait(absl::Duration delay) = 0;
};

// Real time. A wait ends early, for good, once `stop` is notified, which must outlive this.
class SystemRetryClock : public RetryClock {
 public:
  explicit SystemRetryClock(const absl::Notification* stop) : stop_(stop) {}

  absl::Time Now() override { return absl::Now(); }
  bool Wait(absl::Duration delay) override { return !stop_->WaitForNotificationWithTimeout(delay); }

 private:
  const absl::Notification* const stop_;
};

// Calls `call` until it returns OK or the policy gives up, and returns its last status; CANCELLED when
// stopped while waiting, with that status in the message.
absl::Status CallWithRetries(const RetryPolicy& policy, RetryClock& clock,
                             const std::function<absl::Status()>& call);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_RETRY_POLICY_H_
