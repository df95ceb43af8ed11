// What the phases of a run share.
#ifndef WARPSMITH_TRAINER_PHASES_RUN_CONTEXT_H_
#define WARPSMITH_TRAINER_PHASES_RUN_CONTEXT_H_

#include <atomic>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/distributed/communicator.h"
#include "core/distributed/control_plane.h"
#include "prompting/prompts.h"
#include "trainer/configuration.h"
#include "trainer/run_folder/checkpoint_store.h"
#include "trainer/run_folder/run_log.h"
#include "trainer/run_folder/run_progress.h"
#include "trainer/update/token_gradients.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {

// References to what main owns. Every rank has one; what only rank 0 does asks leader().
struct RunContext {
  const Configuration& configuration;
  const Prompts& prompts;
  ControlPlane& control;       // decisions, batches, waiting for rank 0: on the host, without a deadline
  Communicator& communicator;  // collectives of the update, within trainer.collective_timeout_seconds
  CheckpointStore& checkpoints;
  ModelTrainer& policy;
  RunProgress& progress;
  RunLog* log = nullptr;                    // of rank 0, null elsewhere
  TrainingGpu* gpu = nullptr;               // that `policy` computes on; null: the CPU does
  const std::atomic<bool>* stop = nullptr;  // set by SIGTERM and SIGINT
  absl::Time start;                         // of this attempt
  double wall_seconds_before = 0;           // of earlier attempts
  int num_not_finite = 0;                   // steps in a row whose gradient was not finite

  bool leader() const { return control.rank() == 0; }
  PassOptions pass_options(double temperature) const {
    return {.temperature = temperature, .micro_batch_tokens = configuration.trainer.micro_batch_tokens};
  }
};

// Wall time of the run so far, all attempts together.
double WallSeconds(const RunContext& context);

// Rank 0's `value` on every rank: for decisions that hang on a clock.
absl::StatusOr<bool> Agree(const RunContext& context, bool value);

// Rank 0's `number` on every rank; `what` names it in errors.
absl::StatusOr<double> AgreeOnNumber(const RunContext& context, double number, std::string_view what);

// The sum of every rank's `number`, added in rank order, on every rank.
absl::StatusOr<double> SumOverRanks(const RunContext& context, double number, std::string_view what);

// Waits for the trainer's turn on its GPU: see TrainingGpu::Take. Empty on the CPU.
absl::StatusOr<TrainingGpu::Turn> TakeTurn(RunContext& context);

// Notes the norm of a step's gradient. FAILED_PRECONDITION, with the way out, when the last kNotFiniteMax steps had one
// that is not finite.
absl::Status NoteGradientNorm(RunContext& context, double norm, std::string_view learning_rate_key);
inline constexpr int kNotFiniteMax = 3;

// Saves a checkpoint, then waits for all ranks.
absl::Status SaveCheckpoint(RunContext& context);

// CANCELLED on every rank, after saving a checkpoint, when the process of any of them was asked to stop.
// All ranks call it at the same place.
absl::Status StopIfAsked(RunContext& context);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_RUN_CONTEXT_H_
