// Waiting for rollout workers, so that a user sees for whom and since when.
#ifndef WARPSMITH_TRAINER_WORKERS_ROLLOUT_WAIT_H_
#define WARPSMITH_TRAINER_WORKERS_ROLLOUT_WAIT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/wait_lines.h"

namespace grpc {
class Channel;
}

namespace warpsmith {

struct RolloutWaitOptions {
  absl::Duration timeout = absl::Minutes(5);  // trainer.rollout_wait_seconds
  WaitLineOptions lines;
  const std::atomic<bool>* stop = nullptr;  // once set, the wait ends with CANCELLED; null: never
};

struct AwaitedWorker {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
};

// Waits until the process of one of `workers` serves, and returns its index. A worker need not have weights
// for that. Says at once for whom it waits, unless one serves already, and again every `lines.interval`.
// DEADLINE_EXCEEDED `timeout` after `began` names the addresses and what to do; CANCELLED within a
// second or so of `stop`. Errors of the health check where no worker is left to wait for: something
// else answers at that address. A worker whose health check breaks off is waited for.
absl::StatusOr<size_t> AwaitAnyServing(const std::vector<AwaitedWorker>& workers,
                                       const RolloutWaitOptions& options, absl::Time began);

// Whether this process was asked to stop.
bool IsStopped(const RolloutWaitOptions& options);

// Waits `duration`, but ends within a tenth of a second of `options.stop`. `channel` is the worker's.
void PauseUnlessStopped(grpc::Channel& channel, absl::Duration duration, const RolloutWaitOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_ROLLOUT_WAIT_H_
