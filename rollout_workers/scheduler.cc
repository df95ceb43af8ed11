#include "rollout_workers/scheduler.h"

#include <algorithm>

namespace warpsmith {

std::vector<Admission> PlanAdmissions(absl::Span<const WaitingGroup> waiting, int num_free_slots,
                                      const SchedulerLimits& limits) {
  std::vector<Admission> admissions;
  int prefill_tokens = 0;
  for (size_t i = 0; i < waiting.size() && num_free_slots > 0; ++i) {
    const WaitingGroup& group = waiting[i];
    const int cost = group.prompt_resident ? 0 : group.num_prompt_tokens;
    if (prefill_tokens > 0 && prefill_tokens + cost > limits.prefill_tokens_max) break;
    const int num_samples = std::min(group.num_waiting, num_free_slots);
    if (num_samples == 0) continue;
    admissions.push_back({.group = i, .num_samples = num_samples});
    num_free_slots -= num_samples;
    prefill_tokens += cost;
  }
  return admissions;
}

}  // namespace warpsmith
