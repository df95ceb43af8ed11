// Where a run is: everything but its tensors that is needed to go on to the bit.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_RUN_PROGRESS_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_RUN_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/data/transition.h"

namespace warpsmith {

struct ColdStartProgress {
  bool finished = false;
  int64_t step = 0;
  int64_t num_tokens = 0;
  double seconds = 0;
  uint64_t data_cursor = 0;
  double best_loss = std::numeric_limits<double>::max();
  int64_t best_step = 0;
  // Number of the checkpoint that has the weights of best_step; 0: none, or one of an earlier version.
  int64_t best_checkpoint = 0;
  int num_without_gain = 0;   // validations since the best
  std::string matrix_update;  // whose moments there are; empty: none yet, or a checkpoint that does not tell
};

struct GrpoProgress {
  int64_t step = 0;
  double seconds = 0;
  uint64_t task_cursor = 0;
  uint64_t optimise_cursor = 0;  // in the skill-2 tasks of data.optimise
  uint64_t num_draws = 0;        // tasks of either skill
  std::deque<Task> feedback_tasks;
};

// Random numbers follow from the run's seed and these counters, so there is no other random state.
struct RunProgress {
  // Drawn when the run begins, so that the ids of its requests are its own: who answers a request only once
  // must not answer with what another run was told.
  std::string run_id;
  ColdStartProgress cold_start;
  GrpoProgress grpo;
  uint64_t policy_version = 0;
  double wall_seconds = 0;  // of all attempts of the run, up to this point
  std::string device;       // that computes the passes: "cpu", or a GPU's name; empty: older checkpoints
  int64_t metrics_bytes = 0;
  int64_t transitions_bytes = 0;
  std::string evaluation_before;        // JSON, empty before it was done
  std::vector<Task> held_out_optimise;  // skill-2 tasks made with evaluation_before
  std::vector<Task> unseen_optimise;
};

nlohmann::json ProgressToJson(const RunProgress& progress);

// INVALID_ARGUMENT for JSON that ProgressToJson did not make.
absl::StatusOr<RunProgress> ProgressFromJson(const nlohmann::json& json);

nlohmann::json TaskToJson(const Task& task);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_RUN_PROGRESS_H_
