// A run from its configuration to its export, on one rank.
#ifndef WARPSMITH_TRAINER_PHASES_TRAINING_H_
#define WARPSMITH_TRAINER_PHASES_TRAINING_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/distributed/communicator.h"
#include "core/distributed/control_plane.h"
#include "trainer/configuration.h"
#include "trainer/run_folder/run_folder.h"

namespace warpsmith {

enum class RunMode {
  kTrain,      // cold start, evaluation, GRPO, evaluation, export
  kColdStart,  // the cold start alone; ends with a checkpoint
  kEvaluate,   // evaluates the newest checkpoint into the folder evaluation
  kExport,     // exports the newest checkpoint
};

struct TrainingOptions {
  RunMode mode = RunMode::kTrain;
  RunRequest request;
  bool dry_run = false;  // as the run would check configuration and folder, and nothing more
  std::vector<std::string> rollout_addresses;
};

// Runs until the end, an error, or `stop`. Results are in the run's directory: summary.json,
// export/, checkpoints/, metrics.jsonl, transitions.jsonl, tensorboard/, config.yaml. Every rank of
// `control`, which are those of `communicator`, calls it. FAILED_PRECONDITION on every rank where one has settings,
// files or weights that would make another update, and the errors of BeginRun, before anything is changed.
absl::Status RunTraining(const Configuration& configuration, const TrainingOptions& asked,
                         ControlPlane& control, Communicator& communicator, const std::atomic<bool>& stop);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_TRAINING_H_
