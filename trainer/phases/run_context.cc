#include "trainer/phases/run_context.h"

#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/log.h"
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

absl::StatusOr<TrainingGpu::Turn> TakeTurn(RunContext& context) {
  if (context.gpu == nullptr) return TrainingGpu::Turn();
  return context.gpu->Take();
}

absl::Status NoteGradientNorm(RunContext& context, double norm, std::string_view learning_rate_key) {
  context.num_not_finite = std::isfinite(norm) ? 0 : context.num_not_finite + 1;
  if (context.num_not_finite == 0) return absl::OkStatus();
  if (context.leader()) {
    LogWarning(absl::StrCat("the gradient's norm is ", norm, ": the step changes no weight"));
  }
  if (context.num_not_finite < kNotFiniteMax) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the gradient was not finite in ", kNotFiniteMax, " steps in a row, last with the norm ", norm,
      ": lower ", AbslView(learning_rate_key), ", and go on from the newest checkpoint with --resume"));
}

absl::Status SaveCheckpoint(RunContext& context) {
  context.control.Say(context.leader() ? "saving a checkpoint" : "waiting for the checkpoint");
  if (context.leader()) {
    RETURN_IF_ERROR(context.log->Sync());
    context.progress.wall_seconds = WallSeconds(context);
    context.progress.metrics_bytes = context.log->metrics_bytes();
    context.progress.transitions_bytes = context.log->transitions_bytes();
    RETURN_IF_ERROR(context.checkpoints.Save(context.progress, context.policy));
  }
  return context.control.Barrier("checkpoint");
}

absl::Status StopIfAsked(RunContext& context) {
  const bool asked = context.stop != nullptr && context.stop->load();
  ASSIGN_OR_RETURN(const double num_asked, SumOverRanks(context, asked ? 1 : 0, "stop"));
  if (num_asked == 0) return absl::OkStatus();
  RETURN_IF_ERROR(SaveCheckpoint(context));
  return absl::CancelledError("asked to stop; a checkpoint was saved, continue with --resume");
}

}  // namespace warpsmith
