// Where groups of transitions come from.
#ifndef WARPSMITH_TRAINER_DATA_GROUP_GENERATOR_H_
#define WARPSMITH_TRAINER_DATA_GROUP_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/request_limits.h"
#include "trainer/data/transition.h"

namespace warpsmith {

// See warpsmith.v1.SamplingParameters.
struct Sampling {
  double temperature = 1.0;
  double top_p = 1.0;
  int top_k = 0;
  int answer_tokens_max = kAnswerTokensDefault;
};

// Told how many of all wanted groups have arrived, whenever one more has. Calls come one at a time, but not
// all from the thread that waits for the groups.
using GroupsArrived = std::function<void(int num_arrived, int num_wanted)>;

// See warpsmith.v1.GenerateGroupsRequest.
struct GenerateRequest {
  std::string id;
  std::vector<Task> tasks;
  int num_samples = 8;
  Sampling sampling;
  uint64_t seed = 0;
  uint64_t policy_version = 0;
  std::string formula;
  GroupsArrived on_group;  // of this request; may be empty
};

// Rollout workers behind a RolloutClient, or a test's own.
class GroupGenerator {
 public:
  virtual ~GroupGenerator() = default;

  // One group for each task, in the order of the tasks.
  virtual absl::StatusOr<std::vector<TransitionGroup>> Generate(const GenerateRequest& request) = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_GROUP_GENERATOR_H_
