#include "trainer/phases/run_context.h"

#include <cstring>
#include <string>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

std::string BytesOf(double number) { return {reinterpret_cast<const char*>(&number), sizeof(number)}; }

double NumberOf(const std::string& bytes) {
  double number = 0;
  WS_CHECK(bytes.size() == sizeof(number)) << bytes.size() << " bytes for a number";
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

}  // namespace

double WallSeconds(const RunContext& context) {
  return context.wall_seconds_before + absl::ToDoubleSeconds(absl::Now() - context.start);
}

absl::StatusOr<bool> Agree(const RunContext& context, bool value) {
  ASSIGN_OR_RETURN(const std::string agreed, context.control.Broadcast(value ? "yes" : "no", "decision"));
  return agreed == "yes";
}

absl::StatusOr<double> AgreeOnNumber(const RunContext& context, double number, std::string_view what) {
  ASSIGN_OR_RETURN(const std::string agreed, context.control.Broadcast(BytesOf(number), what));
  return NumberOf(agreed);
}

absl::StatusOr<double> SumOverRanks(const RunContext& context, double number, std::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, context.control.AllGather(BytesOf(number), what));
  double sum = 0;
  for (const std::string& part : parts) sum += NumberOf(part);
  return sum;
}

absl::Status SaveCheckpoint(RunContext& context, const std::vector<NamedParameters>& more) {
  context.control.Say(context.leader() ? "saving a checkpoint" : "waiting for the checkpoint");
  if (context.leader()) {
    RETURN_IF_ERROR(context.log->Sync());
    context.progress.wall_seconds = WallSeconds(context);
    context.progress.metrics_bytes = context.log->metrics_bytes();
    context.progress.transitions_bytes = context.log->transitions_bytes();
    Policy& policy = context.policy;
    std::vector<NamedParameters> tensors = {{"weights", &policy.parameters},
                                            {"first_moment", &policy.optimiser.mutable_first_moment()},
                                            {"second_moment", &policy.optimiser.mutable_second_moment()}};
    if (policy.reference.has_value()) tensors.push_back({kReferenceTensors, &*policy.reference});
    tensors.insert(tensors.end(), more.begin(), more.end());
    RETURN_IF_ERROR(context.checkpoints.Save(context.progress, policy.optimiser.num_steps(), tensors));
  }
  return context.control.Barrier("checkpoint");
}

absl::Status StopIfAsked(RunContext& context, const std::vector<NamedParameters>& more) {
  const bool asked = context.stop != nullptr && context.stop->load();
  ASSIGN_OR_RETURN(const double num_asked, SumOverRanks(context, asked ? 1 : 0, "stop"));
  if (num_asked == 0) return absl::OkStatus();
  RETURN_IF_ERROR(SaveCheckpoint(context, more));
  return absl::CancelledError("asked to stop; a checkpoint was saved, continue with --resume");
}

}  // namespace warpsmith
