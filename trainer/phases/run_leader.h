// What rank 0 does beside the update: it owns the workers, the tasks, the evaluations.
#ifndef WARPSMITH_TRAINER_PHASES_RUN_LEADER_H_
#define WARPSMITH_TRAINER_PHASES_RUN_LEADER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/data/prompt_room.h"
#include "trainer/evaluation/evaluation.h"
#include "trainer/phases/group_collector.h"
#include "trainer/phases/run_context.h"
#include "trainer/workers/rollout_client.h"
#include "trainer/workers/weight_publisher.h"

namespace warpsmith {

// One thread at a time.
class RunLeader {
 public:
  // Loads the tasks, waits for the workers, and leaves out the tasks whose prompts they have no room for. CANCELLED
  // when asked to stop meanwhile; FAILED_PRECONDITION when one does not agree (CheckAgrees), or has a reward service
  // that cannot grade the tasks; INVALID_ARGUMENT where there is room for no task of a file. `context` outlives this.
  static absl::StatusOr<std::unique_ptr<RunLeader>> Create(RunContext* context,
                                                           const std::vector<std::string>& rollout_addresses);

  // Gives all workers the present weights, as version progress.policy_version.
  absl::Status Publish();

  // Evaluates the present policy, which must be published, and dumps its transitions under phase `name`. The
  // first call fixes the skill-2 tasks, which are kept in the progress.
  absl::StatusOr<nlohmann::ordered_json> Evaluate(const std::string& name);

  GroupCollector& collector() { return *collector_; }
  // The reward formula's name; where the configuration leaves it to the workers' reward services, their defaults'.
  const std::set<std::string>& formulas() const { return formulas_; }

 private:
  struct Tasks {
    std::vector<Task> train;
    std::vector<Task> optimise;
    std::vector<Task> held_out;
    std::vector<Task> unseen_operator;
  };

  RunLeader(RunContext* context, const std::vector<std::string>& rollout_addresses, const Tasks& tasks);
  absl::Status Connect();
  // Puts the present weights where the workers find them.
  absl::StatusOr<PublishedWeights> PutWeights();
  absl::Status PublishOnce();
  absl::Status TakeTasks(Tasks tasks);
  // What the configuration and its task files ask of a reward service: for an error that says that there is none.
  std::string NeedsText() const;
  // Evaluates one set of tasks under phase `phase`, showing how far it is, and dumps its transitions.
  absl::StatusOr<SplitEvaluation> EvaluateTasks(EvaluationTasks& tasks, const std::string& phase);
  absl::Status Dump(const std::string& phase, const SplitEvaluation& split);

  RunContext& context_;
  const std::vector<std::string> devices_;  // that tasks ask for
  RolloutClient client_;
  WeightPublisher publisher_;
  PublishedDtype published_dtype_ = PublishedDtype::kAsTrained;
  bool has_published_ = false;
  bool offers_ = false;  // weights stay on the GPU, and all workers take them from there
  std::set<std::string> formulas_;
  int64_t context_tokens_max_;      // of the model and of every worker
  std::optional<PromptRoom> room_;  // once there are tasks, as is the collector
  std::vector<Task> held_out_;
  std::vector<Task> unseen_operator_;
  std::unique_ptr<GroupCollector> collector_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_RUN_LEADER_H_
