#include "trainer/phases/grpo.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "trainer/data/seeds.h"
#include "trainer/phases/policy_start.h"
#include "trainer/update/learning_rate.h"

namespace warpsmith {
namespace {

// Mean difference of log-probabilities, in nats, above which something else than rounding is at work: bfloat16 on both
// sides gives some thousandths.
constexpr double kDifferenceAlarm = 0.02;

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// One run of the loop, on one rank.
class GrpoLoop {
 public:
  GrpoLoop(RunContext& context, GrpoLeader* leader) : context_(context), leader_(leader) {}

  absl::Status Run();

 private:
  absl::Status Step();
  absl::StatusOr<std::vector<TrainingSequence>> CollectSequences(StepMetrics& metrics);
  absl::StatusOr<std::vector<TrainingSequence>> Broadcast(std::string bytes);
  absl::Status Update(const std::vector<TrainingSequence>& sequences, StepMetrics& metrics);
  absl::Status NoteWork(const std::vector<TrainingSequence>& sequences, StepMetrics& metrics);
  void WarnOfDifference(const PolicyLossSums& sums);
  absl::Status Publish(StepMetrics& metrics);
  absl::Status Log(const StepMetrics& metrics);
  absl::StatusOr<double> LearningRate();
  absl::StatusOr<bool> Finished();
  double FractionDone() const;

  // Tells the other ranks what this one does in the present step.
  void Say(std::string_view activity) {
    context_.control.Say(absl::StrCat(AbslView(activity), ", step ", progress().step + 1, " of GRPO"));
  }

  const GrpoSection& options() const { return context_.configuration.grpo; }
  GrpoProgress& progress() { return context_.progress.grpo; }

  RunContext& context_;
  GrpoLeader* const leader_;
  std::string last_step_;  // in words, of rank 0; empty before the first
};

absl::Status GrpoLoop::Run() {
  if (leader_ != nullptr) {
    leader_->collector->Restore(progress());
    context_.log->progress_line().Start("grpo");
  }
  ASSIGN_OR_RETURN(bool finished, Finished());
  while (!finished) {
    RETURN_IF_ERROR(Step());
    ASSIGN_OR_RETURN(finished, Finished());
    if (finished || progress().step % context_.configuration.trainer.checkpoint_steps == 0) {
      RETURN_IF_ERROR(SaveCheckpoint(context_));
    }
    RETURN_IF_ERROR(StopIfAsked(context_));
  }
  if (leader_ != nullptr) {
    const std::string done =
        absl::StrCat(progress().step, " steps, ", context_.progress.policy_version, " updates");
    context_.log->progress_line().Finish(last_step_.empty() ? done : done + "; " + last_step_);
  }
  return absl::OkStatus();
}

absl::Status GrpoLoop::Step() {
  const absl::Time start = absl::Now();
  StepMetrics metrics{.has_reference = options().loss.kl_weight > 0};
  ASSIGN_OR_RETURN(const std::vector<TrainingSequence> sequences, CollectSequences(metrics));
  ASSIGN_OR_RETURN(metrics.learning_rate, LearningRate());
  if (!sequences.empty()) {
    RETURN_IF_ERROR(Update(sequences, metrics));
    RETURN_IF_ERROR(NoteWork(sequences, metrics));
    RETURN_IF_ERROR(NoteGradientNorm(context_, metrics.update->gradient_norm, "trainer.grpo.learning_rate"));
    WarnOfDifference(metrics.update->sums);
  }
  if (metrics.update.has_value() && metrics.update->num_taken > 0) {
    ++context_.progress.policy_version;
    RETURN_IF_ERROR(Publish(metrics));
  }
  ++progress().step;
  progress().seconds += SecondsSince(start);
  metrics.step_seconds = SecondsSince(start);
  RETURN_IF_ERROR(Log(metrics));

  const int64_t every_steps = context_.configuration.evaluation.every_steps;
  if (leader_ == nullptr || every_steps == 0 || progress().step % every_steps != 0) return absl::OkStatus();
  Say("evaluating");
  return leader_->evaluate(absl::StrCat("step_", progress().step));
}

// Rank 0 collects; every rank gets the same sequences in the same order.
absl::StatusOr<std::vector<TrainingSequence>> GrpoLoop::CollectSequences(StepMetrics& metrics) {
  Say(leader_ == nullptr ? "waiting for rank 0's groups" : "collecting groups");
  if (leader_ == nullptr) return Broadcast("");
  const absl::Time start = absl::Now();
  const int64_t step = progress().step + 1;  // the one that begins
  const auto on_group = [&](int num_arrived, int num_wanted) {
    const std::string groups = absl::StrCat("step ", step, ": ", GroupsText(num_arrived, num_wanted));
    context_.log->progress_line().Update(FractionDone(),
                                         last_step_.empty() ? groups : last_step_ + "; " + groups);
  };
  ASSIGN_OR_RETURN(const CollectedGroups groups,
                   leader_->collector->Collect(step, context_.progress.policy_version, on_group));
  leader_->collector->Save(progress());
  std::vector<TrainingSequence> sequences;
  for (size_t i = 0; i < groups.used.size(); ++i) {
    const uint64_t seed = DeriveSeed(context_.configuration.run.seed, SeedPurpose::kPermutation,
                                     static_cast<uint64_t>(progress().step) * options().num_tasks + i);
    std::vector<std::optional<double>> advantages;
    std::vector<TrainingSequence> more = SequencesOf(groups.used[i], options(), seed, advantages);
    std::move(more.begin(), more.end(), std::back_inserter(sequences));
    RETURN_IF_ERROR(context_.log->WriteTransitions("train", step, groups.used[i], advantages));
  }
  for (const TransitionGroup& group : groups.equal) {
    RETURN_IF_ERROR(context_.log->WriteTransitions("train", step, group, {}));
  }
  metrics.groups = SummariseGroups(groups);
  metrics.rollout_seconds = SecondsSince(start);
  return Broadcast(EncodeSequences(sequences));
}

absl::StatusOr<std::vector<TrainingSequence>> GrpoLoop::Broadcast(std::string bytes) {
  ASSIGN_OR_RETURN(const std::string batch, context_.control.Broadcast(std::move(bytes), "batch"));
  return DecodeSequences(batch);
}

absl::Status GrpoLoop::Update(const std::vector<TrainingSequence>& sequences, StepMetrics& metrics) {
  const PolicyUpdateOptions update{.loss = options().loss,
                                   .pass = context_.pass_options(options().sampling.temperature),
                                   .num_updates = options().num_updates,
                                   .learning_rate = metrics.learning_rate};
  Say("updating the policy");
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const TrainingGpu::Turn turn, TakeTurn(context_));
  const absl::Time turn_start = absl::Now();
  ASSIGN_OR_RETURN(metrics.update,
                   UpdatePolicy(context_.policy, sequences, update, context_.communicator, context_.control));
  metrics.update_seconds = SecondsSince(turn_start);
  if (context_.gpu != nullptr) metrics.gpu_wait_seconds = absl::ToDoubleSeconds(turn_start - start);
  return absl::OkStatus();
}

absl::Status GrpoLoop::NoteWork(const std::vector<TrainingSequence>& sequences, StepMetrics& metrics) {
  for (const TrainingSequence& sequence : sequences) metrics.num_trained_tokens += sequence.num_tokens();
  metrics.training_flops = StepFlops(context_.configuration.model.config, sequences);
  if (context_.gpu == nullptr) return absl::OkStatus();
  metrics.peak_flops = context_.gpu->peak_flops();
  ASSIGN_OR_RETURN(const int64_t free, context_.gpu->FreeMemory());
  metrics.gpu_used_gigabytes = static_cast<double>(context_.gpu->total_memory() - free) / 1e9;
  metrics.gpu_planned_gigabytes = static_cast<double>(PlanMemory(context_.configuration).total()) / 1e9;
  return absl::OkStatus();
}

void GrpoLoop::WarnOfDifference(const PolicyLossSums& sums) {
  const double difference = sums.worker_difference / static_cast<double>(sums.num_tokens);
  if (leader_ == nullptr || !(difference > kDifferenceAlarm)) return;
  LogWarning(absl::StrFormat(
      "the log-probabilities of worker and trainer differ by %.4f a token in the mean, %.4f at the "
      "99th percentile: the "
      "worker has other weights or another tokenizer, or computes in a coarser type than bfloat16",
      difference, sums.WorkerDifferenceP99()));
}

absl::Status GrpoLoop::Publish(StepMetrics& metrics) {
  if (leader_ == nullptr) return absl::OkStatus();
  const absl::Time start = absl::Now();
  Say("publishing weights");
  RETURN_IF_ERROR(leader_->publish());
  metrics.publish_seconds = SecondsSince(start);
  return absl::OkStatus();
}

absl::Status GrpoLoop::Log(const StepMetrics& metrics) {
  if (leader_ == nullptr) return absl::OkStatus();
  std::vector<NamedScalar> scalars = ToScalars(metrics);
  scalars.emplace_back("policy_version", static_cast<double>(context_.progress.policy_version));
  scalars.emplace_back("feedback_pool", static_cast<double>(progress().feedback_tasks.size()));
  const std::string why = WhyNoUpdate(metrics);
  last_step_ = DescribeStep(progress().step, metrics);
  ProgressLine& line = context_.log->progress_line();
  if (why.empty()) {
    line.Update(FractionDone(), last_step_);
  } else {
    line.Keep(FractionDone(), last_step_);
  }
  return context_.log->WriteMetrics("grpo", progress().step, scalars, {{"no_update", why}});
}

absl::StatusOr<double> GrpoLoop::LearningRate() {
  const LearningRateSchedule schedule{.peak = options().learning_rate,
                                      .num_warmup_steps = options().num_warmup_steps,
                                      .final_fraction = options().learning_rate_final};
  return AgreeOnNumber(context_, schedule.At(progress().step, FractionDone()), "learning rate");
}

absl::StatusOr<bool> GrpoLoop::Finished() { return Agree(context_, FractionDone() >= 1.0); }

double GrpoLoop::FractionDone() const {
  const GrpoProgress& done = context_.progress.grpo;
  if (options().num_steps == 0) return 1.0;
  double fraction = static_cast<double>(done.step) / static_cast<double>(options().num_steps);
  if (options().seconds > 0) fraction = std::max(fraction, done.seconds / options().seconds);
  return std::min(fraction, 1.0);
}

}  // namespace

absl::Status RunGrpo(RunContext& context, GrpoLeader* leader) { return GrpoLoop(context, leader).Run(); }

}  // namespace warpsmith
