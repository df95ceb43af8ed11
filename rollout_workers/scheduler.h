// Which samples enter the batch before a step: a pure function of a snapshot.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SCHEDULER_H_
#define WARPSMITH_ROLLOUT_WORKERS_SCHEDULER_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace warpsmith {

// A group some of whose samples have no slot yet. All samples of a group share one prompt.
struct WaitingGroup {
  int num_prompt_tokens = 0;
  int num_waiting = 0;
  // Whether a sample in a slot still holds the prompt's keys and values, so that admitting costs a copy, no
  // prefill.
  bool prompt_resident = false;
};

struct Admission {
  size_t group = 0;  // index into the snapshot
  int num_samples = 0;
};

struct SchedulerLimits {
  // Prompt tokens that one step may prefill beside the tokens it decodes: bounds how long a step keeps
  // samples that are decoding waiting. One prompt is always let in, however long.
  int prefill_tokens_max = 4096;
};

// Admissions for the next step. Groups are served in the order given, as many samples of each as there are
// free slots; no group is overtaken, so none starves: a prompt over what is left of the limit ends the round.
std::vector<Admission> PlanAdmissions(absl::Span<const WaitingGroup> waiting, int num_free_slots,
                                      const SchedulerLimits& limits);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_SCHEDULER_H_
