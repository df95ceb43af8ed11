#include "trainer/phases/cold_start.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "trainer/phases/step_metrics.h"
#include "trainer/update/agreement.h"
#include "trainer/update/learning_rate.h"
#include "trainer/update/token_gradients.h"

namespace warpsmith {
namespace {

constexpr int kStepsPerLogLine = 10;

SequenceIndices OwnShare(const std::vector<TrainingSequence>& sequences, const Communicator& communicator) {
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  return AssignToRanks(lengths, communicator.size())[communicator.rank()];
}

// Reads the best weights on rank 0, where the present ones are not the best.
absl::Status LoadBest(RunContext& context) {
  const ColdStartProgress& progress = context.progress.cold_start;
  if (progress.best_checkpoint == 0 || progress.best_step == progress.step) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::filesystem::path checkpoint,
                   context.checkpoints.Find(progress.best_checkpoint));
  return LoadBestWeights(checkpoint, context.policy);
}

}  // namespace

absl::Status KeepOlderBest(RunContext& context, const std::filesystem::path& resumed) {
  ColdStartProgress& progress = context.progress.cold_start;
  const bool is_of_earlier_version = progress.best_checkpoint == 0 && progress.best_step > 0;
  if (!context.leader() || !is_of_earlier_version) return absl::OkStatus();
  ASSIGN_OR_RETURN(progress.best_checkpoint, context.checkpoints.NumberOf(resumed));
  return absl::OkStatus();
}

absl::Status TakeBestWeights(RunContext& context) {
  RETURN_IF_ERROR(ShareStatus(context.control, context.leader() ? LoadBest(context) : absl::OkStatus()));
  RETURN_IF_ERROR(BroadcastWeights(context.policy, context.communicator));
  context.progress.cold_start.best_checkpoint = 0;
  return absl::OkStatus();
}

ColdStart::ColdStart(RunContext* context, ColdStartData* data, std::vector<TrainingSequence> validation)
    : context_(*context), data_(*data), validation_(std::move(validation)) {}

absl::Status ColdStart::Run() {
  ColdStartProgress& progress = context_.progress.cold_start;
  data_.set_cursor(progress.data_cursor);
  if (context_.leader()) context_.log->progress_line().Start("cold start");

  ASSIGN_OR_RETURN(bool finished, Finished());
  while (!finished) {
    RETURN_IF_ERROR(Step());
    ASSIGN_OR_RETURN(finished, Finished());
    if (finished || progress.step % context_.configuration.cold_start.validation_steps == 0) {
      RETURN_IF_ERROR(Validate());
      ASSIGN_OR_RETURN(finished, Finished());
      if (!finished) RETURN_IF_ERROR(SaveCheckpoint(context_));
    }
    RETURN_IF_ERROR(StopIfAsked(context_));
  }
  RETURN_IF_ERROR(TakeBestWeights(context_));
  progress.finished = true;
  if (context_.leader()) {
    RETURN_IF_ERROR(
        context_.log->WriteMetrics("cold_start", progress.step, {{"cold_start_seconds", progress.seconds}}));
    context_.log->progress_line().Finish(absl::StrFormat("best validation loss %.4f at step %d, %d tokens",
                                                         progress.best_loss, progress.best_step,
                                                         progress.num_tokens));
  }
  return absl::OkStatus();
}

absl::Status ColdStart::Step() {
  const ColdStartSection& options = context_.configuration.cold_start;
  ColdStartProgress& progress = context_.progress.cold_start;
  ModelTrainer& policy = context_.policy;
  const absl::Time start = absl::Now();
  context_.control.Say(absl::StrCat("in step ", progress.step + 1, " of SFT"));

  ASSIGN_OR_RETURN(const std::vector<TrainingSequence> sequences, data_.Draw(options.num_sequences));
  const double num_answer_tokens = static_cast<double>(CountAnswerTokens(sequences));
  double loss = 0;
  ASSIGN_OR_RETURN(std::optional<TrainingGpu::Turn> turn, TakeTurn(context_));
  const absl::Time compute_start = absl::Now();
  RETURN_IF_ERROR(AccumulateGradients(policy, sequences, OwnShare(sequences, context_.communicator),
                                      context_.pass_options(1.0), [&](const ScoredToken& token) {
                                        loss -= token.log_prob / num_answer_tokens;
                                        return -1.0 / num_answer_tokens;
                                      }));
  RETURN_IF_ERROR(AllReduceGradients(policy, context_.communicator));
  ASSIGN_OR_RETURN(loss, SumOverRanks(context_, loss, "loss"));
  const LearningRateSchedule schedule{.peak = options.learning_rate,
                                      .num_warmup_steps = options.num_warmup_steps,
                                      .final_fraction = options.learning_rate_final};
  ASSIGN_OR_RETURN(const double fraction, ShareFraction());
  const double learning_rate = schedule.At(progress.step, fraction);
  ASSIGN_OR_RETURN(const double norm, policy.Step(learning_rate, options.matrix_update));
  turn.reset();
  flops_ += StepFlops(context_.configuration.model.config, sequences);
  compute_seconds_ += absl::ToDoubleSeconds(absl::Now() - compute_start);
  RETURN_IF_ERROR(NoteGradientNorm(context_, norm, "trainer.cold_start.learning_rate"));

  ++progress.step;
  progress.matrix_update = MatrixUpdateName(options.matrix_update);
  for (const TrainingSequence& sequence : sequences) progress.num_tokens += sequence.num_tokens();
  progress.data_cursor = data_.cursor();
  progress.seconds += absl::ToDoubleSeconds(absl::Now() - start);
  return LogStep(loss, norm, learning_rate);
}

absl::Status ColdStart::Validate() {
  ColdStartProgress& progress = context_.progress.cold_start;
  const absl::Time start = absl::Now();
  context_.control.Say(absl::StrCat("validating after step ", progress.step, " of SFT"));
  ASSIGN_OR_RETURN(const double loss, ValidationLoss());
  if (loss < progress.best_loss) {
    progress.best_loss = loss;
    progress.best_step = progress.step;
    progress.num_without_gain = 0;
    if (context_.leader()) {
      ASSIGN_OR_RETURN(progress.best_checkpoint, context_.checkpoints.NextNumber());
    }
  } else {
    ++progress.num_without_gain;
  }
  progress.seconds += absl::ToDoubleSeconds(absl::Now() - start);
  if (!context_.leader()) return absl::OkStatus();
  return context_.log->WriteMetrics("cold_start", progress.step,
                                    {{"validation_loss", loss},
                                     {"best_validation_loss", progress.best_loss},
                                     {"cold_start_tokens", static_cast<double>(progress.num_tokens)}});
}

absl::StatusOr<double> ColdStart::ValidationLoss() {
  double sum = 0;
  {
    ASSIGN_OR_RETURN(const TrainingGpu::Turn turn, TakeTurn(context_));
    RETURN_IF_ERROR(ScoreTokens(context_.policy, PassWeights::kPresent, validation_,
                                OwnShare(validation_, context_.communicator), context_.pass_options(1.0),
                                [&](const ScoredToken& token) { sum -= token.log_prob; }));
  }
  ASSIGN_OR_RETURN(sum, SumOverRanks(context_, sum, "validation loss"));
  return sum / static_cast<double>(std::max<int64_t>(1, CountAnswerTokens(validation_)));
}

absl::Status ColdStart::LogStep(double loss, double gradient_norm, double learning_rate) {
  if (!context_.leader()) return absl::OkStatus();
  const ColdStartProgress& progress = context_.progress.cold_start;
  context_.log->progress_line().Update(
      FractionDone(), absl::StrFormat("step %d, loss %.3f, best validation %.3f", progress.step, loss,
                                      progress.best_step > 0 ? progress.best_loss : 0.0));
  if (progress.step % kStepsPerLogLine != 0) return absl::OkStatus();
  return context_.log->WriteMetrics(
      "cold_start", progress.step,
      {{"loss", loss},
       {"gradient_norm", gradient_norm},
       {"learning_rate", learning_rate},
       {"tokens_per_second", static_cast<double>(progress.num_tokens) / progress.seconds},
       {"mfu",
        context_.gpu == nullptr ? kNotANumber : flops_ / compute_seconds_ / context_.gpu->peak_flops()}});
}

double ColdStart::FractionDone() const {
  const ColdStartSection& options = context_.configuration.cold_start;
  const ColdStartProgress& progress = context_.progress.cold_start;
  double fraction = 0;
  if (options.seconds > 0) fraction = progress.seconds / options.seconds;
  if (options.tokens > 0) {
    fraction =
        std::max(fraction, static_cast<double>(progress.num_tokens) / static_cast<double>(options.tokens));
  }
  return std::min(fraction, 1.0);
}

absl::StatusOr<double> ColdStart::ShareFraction() {
  return AgreeOnNumber(context_, FractionDone(), "fraction of SFT");
}

absl::StatusOr<bool> ColdStart::Finished() {
  const ColdStartProgress& progress = context_.progress.cold_start;
  const bool patient = progress.num_without_gain < context_.configuration.cold_start.patience;
  return Agree(context_, FractionDone() >= 1.0 || !patient);
}

}  // namespace warpsmith
