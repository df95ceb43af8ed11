// Which tasks the model and the workers have room for: prompt and completion together have a limit of tokens.
#ifndef WARPSMITH_TRAINER_DATA_PROMPT_ROOM_H_
#define WARPSMITH_TRAINER_DATA_PROMPT_ROOM_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "prompting/prompts.h"
#include "trainer/data/transition.h"

namespace warpsmith {

// One thread at a time.
class PromptRoom {
 public:
  // A prompt may have `prompt_tokens_max` tokens. `prompts` outlives this.
  PromptRoom(const Prompts* prompts, int64_t prompt_tokens_max);

  // Returns whether the prompt of `task` is short enough. A task that makes no prompt has room: the worker says what it
  // lacks.
  bool Has(const Task& task) const;

  // Returns those of `tasks` for which there is room, in their order, and logs once how many of `key` are left out.
  // INVALID_ARGUMENT where there is room for none.
  absl::StatusOr<std::vector<Task>> Keep(std::vector<Task> tasks, std::string_view key) const;

  // As Has, of a task of skill 2 that this run makes. Logs the first for which there is no room.
  bool HasForMade(const Task& task);

 private:
  const Prompts* prompts_;
  int64_t prompt_tokens_max_;
  bool has_said_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_PROMPT_ROOM_H_
