// What a run leaves for people and plots: metrics.jsonl, TensorBoard events, transitions.jsonl, a progress
// line.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOG_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOG_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/data/transition.h"
#include "trainer/run_folder/append_file.h"
#include "trainer/run_folder/progress_line.h"
#include "trainer/run_folder/run_progress.h"
#include "trainer/run_folder/tensorboard_writer.h"

namespace warpsmith {

using NamedText = std::pair<std::string, std::string>;

// Kept by rank 0 alone. Not thread-safe.
class RunLog {
 public:
  // Opens the files in `directory`, cut back to what `progress` knows of; TensorBoard's are written anew from the lines
  // of metrics.jsonl that are left.
  static absl::StatusOr<std::unique_ptr<RunLog>> Open(const std::filesystem::path& directory,
                                                      const RunProgress& progress);

  // One line of metrics.jsonl, {"phase": ..., "step": ..., name: value, ..., name: text, ...}, and the same
  // numbers as TensorBoard scalars "<phase>/<name>". Values that are not finite and texts that are empty
  // become null and stay out of TensorBoard.
  absl::Status WriteMetrics(const std::string& phase, int64_t step, const std::vector<NamedScalar>& metrics,
                            const std::vector<NamedText>& texts = {});

  // A line of transitions.jsonl for each transition: phase, step, the task, the advantage where it was used,
  // and the transition as it came from the worker.
  absl::Status WriteTransitions(const std::string& phase, int64_t step, const TransitionGroup& group,
                                const std::vector<std::optional<double>>& advantages);

  // Returns when what was written to the .jsonl files is on disk, as a checkpoint that names their
  // sizes needs it.
  absl::Status Sync();

  ProgressLine& progress_line() { return progress_line_; }
  int64_t metrics_bytes() const { return metrics_.size(); }
  int64_t transitions_bytes() const { return transitions_.size(); }

 private:
  RunLog(AppendFile metrics, AppendFile transitions, TensorboardWriter events);

  AppendFile metrics_;
  AppendFile transitions_;
  TensorboardWriter events_;
  ProgressLine progress_line_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOG_H_
