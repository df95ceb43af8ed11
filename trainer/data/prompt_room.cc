#include "trainer/data/prompt_room.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "proto/advice_words.h"

namespace warpsmith {

PromptRoom::PromptRoom(const Prompts* prompts, int64_t prompt_tokens_max)
    : prompts_(prompts), prompt_tokens_max_(prompt_tokens_max) {}

bool PromptRoom::Has(const Task& task) const {
  const PromptParts parts = {
      .reference = task.reference_source,
      .previous = task.previous_source,
      .finding = task.feedback.finding,
      .evidence = task.feedback.evidence,
      .advice = std::string(AdviceWords(static_cast<v1::Advice>(task.feedback.advice))),
      .allowed_libraries = task.allowed_libraries};
  const absl::StatusOr<std::vector<int32_t>> prompt =
      task.skill == Skill::kGenerate ? prompts_->Generate(parts) : prompts_->Optimise(parts);
  return !prompt.ok() || std::ssize(*prompt) <= prompt_tokens_max_;
}

absl::StatusOr<std::vector<Task>> PromptRoom::Keep(std::vector<Task> tasks, std::string_view key) const {
  const size_t num_tasks = tasks.size();
  std::erase_if(tasks, [this](const Task& task) { return !Has(task); });
  const size_t num_left_out = num_tasks - tasks.size();
  if (num_left_out == 0) return tasks;
  const std::string limit =
      absl::StrCat(prompt_tokens_max_,
                   " tokens, which leave room for the completion "
                   "(trainer.grpo.sampling.answer_tokens_max) in rollout.context_tokens_max and the model");
  if (tasks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("none of the ", num_tasks, " tasks of ", AbslView(key),
                                                   " has a prompt of at most ", limit,
                                                   "; shorten them, or raise the limits"));
  }
  LogWarning(absl::StrCat(num_left_out, " of ", num_tasks, " tasks of ", AbslView(key),
                          " are left out: their prompts have more than ", limit));
  return tasks;
}

bool PromptRoom::HasForMade(const Task& task) {
  if (Has(task)) return true;
  if (!has_said_) {
    LogWarning(absl::StrCat("programs are too long to be improved, first one of task \"",
                            Escape(task.id, 128), "\": the prompt has more than ", prompt_tokens_max_,
                            " tokens; no such task is made"));
  }
  has_said_ = true;
  return false;
}

}  // namespace warpsmith
