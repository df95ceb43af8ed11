#include "trainer/run_context.h"

#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {

double WallSeconds(const RunContext& context) {
  return context.wall_seconds_before + absl::ToDoubleSeconds(absl::Now() - context.start);
}

absl::StatusOr<bool> Agree(const RunContext& context, bool value) {
  uint8_t byte = value ? 1 : 0;
  RETURN_IF_ERROR(context.communicator.Broadcast(&byte, 1, 0, {"decision", "control"}));
  return byte == 1;
}

absl::Status SaveCheckpoint(RunContext& context, const std::vector<NamedParameters>& more) {
  if (context.leader()) {
    RETURN_IF_ERROR(context.log->Sync());
    context.progress.wall_seconds = WallSeconds(context);
    context.progress.metrics_bytes = context.log->metrics_bytes();
    context.progress.transitions_bytes = context.log->transitions_bytes();
    Policy& policy = context.policy;
    std::vector<NamedParameters> tensors = {{"weights", &policy.parameters},
                                            {"first_moment", &policy.optimiser.mutable_first_moment()},
                                            {"second_moment", &policy.optimiser.mutable_second_moment()}};
    if (policy.reference.has_value()) tensors.push_back({"reference", &*policy.reference});
    tensors.insert(tensors.end(), more.begin(), more.end());
    RETURN_IF_ERROR(context.checkpoints.Save(context.progress, policy.optimiser.num_steps(), tensors));
  }
  return context.communicator.Barrier({"checkpoint", "control"});
}

absl::Status StopIfAsked(RunContext& context, const std::vector<NamedParameters>& more) {
  ASSIGN_OR_RETURN(const bool asked, Agree(context, context.stop != nullptr && context.stop->load()));
  if (!asked) return absl::OkStatus();
  RETURN_IF_ERROR(SaveCheckpoint(context, more));
  return absl::CancelledError("asked to stop; a checkpoint was saved, continue with --resume");
}

}  // namespace warpsmith
