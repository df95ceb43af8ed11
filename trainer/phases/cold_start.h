// Supervised learning on pairs, until the validation loss no longer falls: what makes a Coder that GRPO can
// improve.
#ifndef WARPSMITH_TRAINER_PHASES_COLD_START_H_
#define WARPSMITH_TRAINER_PHASES_COLD_START_H_

#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/data/cold_start_data.h"
#include "trainer/data/training_sequence.h"
#include "trainer/phases/run_context.h"

namespace warpsmith {

// Token-mean cross-entropy of the answers. Ends at its limit of time or tokens, or after `patience`
// validations without a better loss, with the weights of the best validation. Checkpoints at every
// validation; the one of the best is kept until the end.
class ColdStart {
 public:
  // `context` and `data` outlive this.
  ColdStart(RunContext* context, ColdStartData* data, std::vector<TrainingSequence> validation);

  // Runs from the progress in the context to the end.
  absl::Status Run();

 private:
  absl::Status Step();
  absl::Status Validate();
  absl::StatusOr<double> ValidationLoss();
  absl::Status LogStep(double loss, double gradient_norm, double learning_rate);
  double FractionDone() const;
  // Rank 0's fraction, on every rank: it hangs on a clock.
  absl::StatusOr<double> ShareFraction();
  absl::StatusOr<bool> Finished();

  RunContext& context_;
  ColdStartData& data_;
  const std::vector<TrainingSequence> validation_;
  // Sums over the steps since the start or the resumption.
  double flops_ = 0;
  double compute_seconds_ = 0;
};

// Keeps the checkpoint that a run of an earlier version goes on from: the best weights so far are a file of it.
absl::Status KeepOlderBest(RunContext& context, const std::filesystem::path& resumed);

// Gives the policy the weights of the best validation, on every rank. The errors of CheckpointStore::Find, also where
// another rank has them.
absl::Status TakeBestWeights(RunContext& context);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_COLD_START_H_
