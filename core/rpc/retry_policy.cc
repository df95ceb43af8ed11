#include "core/rpc/retry_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/counter_random.h"
#include "core/rpc/status.h"

namespace warpsmith {

void RetryCounts::Add(const absl::Status& status) { ++(IsBackPressure(status) ? num_refused : num_failed); }

std::optional<absl::Duration> RetryPolicy::NextDelay(const RetryCounts& counts, const absl::Status& status,
                                                     absl::Duration elapsed) const {
  const std::optional<absl::Duration> asked = GetRetryDelay(status);
  if (status.ok() || counts.num_failed >= options_.num_attempts_max) return std::nullopt;
  if (!asked.has_value() && !absl::IsUnavailable(status)) return std::nullopt;

  // A client that is told when to come back need not guess; a first delay keeps it from hammering all the same.
  const int num_growths = IsBackPressure(status) ? 0 : counts.num_failed - 1;
  const absl::Duration grown = options_.delay_initial * std::pow(options_.growth, num_growths);
  const double draw =
      UniformDouble(options_.seed, static_cast<uint64_t>(counts.num_failed + counts.num_refused));
  const double spread = 1.0 + options_.jitter * (2.0 * draw - 1.0);
  const absl::Duration own = std::min(grown, options_.delay_max) * spread;
  // Spread upwards only: coming back earlier than asked would be refused again.
  const absl::Duration least = asked.value_or(absl::ZeroDuration()) * (1.0 + options_.jitter * draw);
  const absl::Duration delay = std::max(own, least);
  if (elapsed + delay > options_.elapsed_max) return std::nullopt;
  return delay;
}

absl::Status CallWithRetries(const RetryPolicy& policy, RetryClock& clock,
                             const std::function<absl::Status()>& call) {
  const absl::Time start = clock.Now();
  RetryCounts counts;
  while (true) {
    absl::Status status = call();
    if (status.ok()) return status;
    counts.Add(status);
    const std::optional<absl::Duration> delay = policy.NextDelay(counts, status, clock.Now() - start);
    if (!delay.has_value()) return status;
    if (!clock.Wait(*delay)) {
      return absl::CancelledError(absl::StrCat("stopped while waiting to retry after: ", status.ToString()));
    }
  }
}

}  // namespace warpsmith
