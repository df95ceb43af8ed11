// What a task's oracle is asked to draw, and how exact its answer says that programs must be.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_DRAW_REQUEST_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_DRAW_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/tensors/draw.h"

namespace warpsmith {

// What the oracle is asked to draw: the distribution of the inputs and the seed of the model's parameters.
struct DrawRequest {
  std::string style = oracle::Draw::kOwn;  // or another of its styles
  int64_t parameter_seed = 0;
  // Expected outputs by float64 arithmetic where the task allows; else in its own dtype, which costs less.
  bool exact = true;
};

// What is asked for in its place where the reference does not survive it: in the end the task's own inputs with the
// model's own parameters, of which no reference may refuse any.
DrawRequest Tamer(DrawRequest wanted);

// Of a `drawn`, one for each output. INVALID_ARGUMENT: it has others.
absl::StatusOr<std::vector<Tolerance>> ReadTolerances(const nlohmann::json& drawn, size_t num_outputs);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_DRAW_REQUEST_H_
