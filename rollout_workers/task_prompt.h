// The prompt of a Task.
#ifndef WARPSMITH_ROLLOUT_WORKERS_TASK_PROMPT_H_
#define WARPSMITH_ROLLOUT_WORKERS_TASK_PROMPT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "prompting/prompts.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// The token ids that the Coder sees. INVALID_ARGUMENT with the values for a task without skill or
// reference, an OPTIMISE task without previous program or advice, and a prompt of more than
// `tokens_max` tokens.
absl::StatusOr<std::vector<int32_t>> TaskPrompt(const Prompts& prompts, const v1::Task& task,
                                                int64_t tokens_max);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_TASK_PROMPT_H_
