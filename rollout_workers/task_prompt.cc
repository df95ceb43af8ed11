#include "rollout_workers/task_prompt.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "proto/advice_words.h"

namespace warpsmith {
namespace {

absl::Status TaskError(const v1::Task& task, const std::string& fault) {
  return absl::InvalidArgumentError(absl::StrCat("Task \"", Escape(task.id(), 128), "\" ", fault));
}

bool IsBlank(const std::string& text) { return absl::StripAsciiWhitespace(text).empty(); }

absl::Status CheckParts(const v1::Task& task) {
  if (IsBlank(task.reference_source())) return TaskError(task, "has no reference_source");
  if (task.skill() == v1::SKILL_GENERATE) return absl::OkStatus();
  if (task.skill() != v1::SKILL_OPTIMISE) return TaskError(task, "has no skill");
  if (IsBlank(task.previous_source())) return TaskError(task, "is to optimise and has no previous_source");
  if (AdviceWords(task.feedback().advice()).empty())
    return TaskError(task, "is to optimise and has no advice");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> TaskPrompt(const Prompts& prompts, const v1::Task& task,
                                                int64_t tokens_max) {
  RETURN_IF_ERROR(CheckParts(task));
  const PromptParts parts = {
      .reference = task.reference_source(),
      .previous = task.previous_source(),
      .finding = task.feedback().finding(),
      .evidence = task.feedback().evidence(),
      .advice = std::string(AdviceWords(task.feedback().advice())),
      .allowed_libraries = {task.allowed_libraries().begin(), task.allowed_libraries().end()}};
  ASSIGN_OR_RETURN(std::vector<int32_t> token_ids,
                   task.skill() == v1::SKILL_GENERATE ? prompts.Generate(parts) : prompts.Optimise(parts));
  if (std::ssize(token_ids) > tokens_max) {
    return TaskError(task, absl::StrCat("has a prompt of ", token_ids.size(), " tokens; at most ", tokens_max,
                                        " leave room for the answer"));
  }
  return token_ids;
}

}  // namespace warpsmith
