#include "trainer/workers/rollout_wait.h"

#include <grpcpp/channel.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"

namespace warpsmith {
namespace {

// What the health service calls the worker's process: it can be given weights before it can serve any groups.
constexpr char kProcess[] = "";
// How long a worker that serves already may take to say so before the first line.
constexpr absl::Duration kFirstLook = absl::Milliseconds(200);
// Bounds of one look at one worker: long enough for an answer, short enough to see the next worker come back.
constexpr absl::Duration kLookMin = absl::Milliseconds(50);
constexpr absl::Duration kLookMax = absl::Seconds(1);
// From a look that was broken off to the next, unless the connection changes; also between looks at `stop`.
constexpr absl::Duration kPause = absl::Milliseconds(100);

// "the rollout worker at A", "one of the rollout workers at A, B".
std::string NamesOf(const std::vector<AwaitedWorker>& workers) {
  const std::string addresses = absl::StrJoin(
      workers, ", ", [](std::string* out, const AwaitedWorker& worker) { *out += worker.address; });
  return absl::StrCat(workers.size() == 1 ? "the rollout worker at " : "one of the rollout workers at ",
                      addresses);
}

absl::Status TimedOut(const std::vector<AwaitedWorker>& workers, const RolloutWaitOptions& options) {
  return absl::DeadlineExceededError(absl::StrCat(
      NamesOf(workers), " does not serve after ", SecondsText(options.timeout),
      " (trainer.rollout_wait_seconds): start `warpsmith-rollout --address ", workers.front().address,
      "` with the trainer's --config, look into its log if it was started, or name another address by "
      "--rollout-address"));
}

absl::Status Stopped(const std::vector<AwaitedWorker>& workers) {
  return absl::CancelledError(absl::StrCat("asked to stop while waiting for ", NamesOf(workers),
                                           "; --resume goes on from the newest checkpoint"));
}

// Of a worker that does not serve yet, or that is ending or starting: those break off what they were asked.
bool MayServeLater(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) || absl::IsCancelled(status);
}

void AwaitChange(grpc::Channel& channel, absl::Time deadline) {
  channel.WaitForStateChange(channel.GetState(/*try_to_connect=*/false), absl::ToChronoTime(deadline));
}

}  // namespace

bool IsStopped(const RolloutWaitOptions& options) { return options.stop != nullptr && options.stop->load(); }

void PauseUnlessStopped(grpc::Channel& channel, absl::Duration duration, const RolloutWaitOptions& options) {
  const absl::Time end = absl::Now() + duration;
  for (absl::Time now = absl::Now(); now < end && !IsStopped(options); now = absl::Now())
    AwaitChange(channel, std::min(end, now + kPause));
}

absl::StatusOr<size_t> AwaitAnyServing(const std::vector<AwaitedWorker>& workers,
                                       const RolloutWaitOptions& options, absl::Time began) {
  const absl::Time deadline = began + options.timeout;
  absl::Time line_due = absl::Now() + kFirstLook;
  std::vector<absl::Status> refusals(workers.size());
  size_t num_refusals = 0;
  while (num_refusals < workers.size()) {
    for (size_t i = 0; i < workers.size(); ++i) {
      if (!refusals[i].ok()) continue;
      const absl::Duration left = std::min(line_due, deadline) - absl::Now();
      const absl::Status status =
          WaitUntilServing(workers[i].channel, kProcess, std::clamp(left, kLookMin, kLookMax));
      if (status.ok()) return i;
      if (MayServeLater(status)) {
        if (IsStopped(options)) return Stopped(workers);
        // A connection that stays open may break off the next stream as soon as this one.
        if (!absl::IsDeadlineExceeded(status)) AwaitChange(*workers[i].channel, absl::Now() + kPause);
        continue;
      }
      refusals[i] = absl::Status(status.code(),
                                 absl::StrCat("rollout worker ", workers[i].address, ": ", status.message()));
      ++num_refusals;
    }
    const absl::Time now = absl::Now();
    if (now >= line_due && num_refusals < workers.size()) {
      options.lines.say(WaitLine(NamesOf(workers), now - began, options.timeout));
      line_due = now + options.lines.interval;
    }
    if (now >= deadline) return TimedOut(workers, options);
  }
  return refusals.front();
}

}  // namespace warpsmith
