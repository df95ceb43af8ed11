// The GRPO loop: collect groups, update the policy, publish its weights, again.
#ifndef WARPSMITH_TRAINER_PHASES_GRPO_H_
#define WARPSMITH_TRAINER_PHASES_GRPO_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/phases/group_collector.h"
#include "trainer/phases/run_context.h"
#include "trainer/phases/step_metrics.h"
#include "trainer/update/policy_update.h"

namespace warpsmith {

// What rank 0 alone has a hand in; null on the other ranks.
struct GrpoLeader {
  GroupCollector* collector = nullptr;
  // Gives the workers the present weights as version progress.policy_version.
  std::function<absl::Status()> publish;
  // Evaluates the present policy under a name; every_steps decides how often.
  std::function<absl::Status(const std::string& name)> evaluate;
};

// Runs until the limit of steps or time. The workers must have the present weights at the start. Every rank
// calls it; `leader` is null but on rank 0.
absl::Status RunGrpo(RunContext& context, GrpoLeader* leader);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_GRPO_H_
