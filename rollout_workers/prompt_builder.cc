#include "rollout_workers/prompt_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr const char* kStopTokens[] = {"<|im_end|>", "<|endoftext|>"};

// However a program ends, the prompt goes on in a new line.
std::string Program(const std::string& source) {
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(source), "\n");
}

std::string OneLine(const std::string& text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\r", ""}, {"\n", " "}});
}

absl::Status TaskError(const v1::Task& task, const std::string& fault) {
  return absl::InvalidArgumentError(absl::StrCat("Task \"", Escape(task.id(), 128), "\" ", fault));
}

absl::StatusOr<PromptSlots> SlotsOf(const v1::Task& task) {
  if (absl::StripAsciiWhitespace(task.reference_source()).empty())
    return TaskError(task, "has no reference_source");
  PromptSlots slots = {{"reference", Program(task.reference_source())}};
  if (task.skill() == v1::SKILL_GENERATE) return slots;
  if (task.skill() != v1::SKILL_OPTIMISE) return TaskError(task, "has no skill");
  if (absl::StripAsciiWhitespace(task.previous_source()).empty()) {
    return TaskError(task, "is to optimise and has no previous_source");
  }
  if (AdviceText(task.feedback().advice()).empty())
    return TaskError(task, "is to optimise and has no advice");
  slots["previous"] = Program(task.previous_source());
  slots["finding"] = OneLine(task.feedback().finding());
  slots["evidence"] = OneLine(task.feedback().evidence());
  slots["advice"] = AdviceText(task.feedback().advice());
  return slots;
}

absl::Status CheckSlots(const PromptTemplate& prompt, const std::filesystem::path& path,
                        const std::vector<std::string>& expected) {
  if (prompt.slot_names() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path.string(), " has the slots ",
                                                 absl::StrJoin(prompt.slot_names(), ", "),
                                                 "; its skill fills ", absl::StrJoin(expected, ", ")));
}

}  // namespace

absl::StatusOr<PromptBuilder> PromptBuilder::Create(const std::filesystem::path& tokenizer_directory,
                                                    const std::filesystem::path& prompts_directory) {
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(tokenizer_directory));
  const std::filesystem::path generate_path = prompts_directory / "generate.txt";
  const std::filesystem::path optimise_path = prompts_directory / "optimise.txt";
  ASSIGN_OR_RETURN(PromptTemplate generate, PromptTemplate::Load(generate_path));
  ASSIGN_OR_RETURN(PromptTemplate optimise, PromptTemplate::Load(optimise_path));
  RETURN_IF_ERROR(CheckSlots(generate, generate_path, {"reference"}));
  RETURN_IF_ERROR(
      CheckSlots(optimise, optimise_path, {"advice", "evidence", "finding", "previous", "reference"}));
  PromptBuilder builder(std::move(tokenizer), std::move(generate), std::move(optimise));
  if (builder.stop_token_ids_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(tokenizer_directory.string(), " has none of the tokens ",
                                                   absl::StrJoin(kStopTokens, ", "),
                                                   ": no answer would ever end"));
  }
  return builder;
}

PromptBuilder::PromptBuilder(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise)
    : tokenizer_(std::move(tokenizer)), generate_(std::move(generate)), optimise_(std::move(optimise)) {
  for (const char* const text : kStopTokens) {
    if (const std::optional<int32_t> id = tokenizer_.TokenId(text)) stop_token_ids_.push_back(*id);
  }
  sha256_ = Sha256Hex(absl::StrCat(generate_.sha256(), optimise_.sha256(), tokenizer_.sha256()));
}

absl::StatusOr<std::vector<int32_t>> PromptBuilder::Build(const v1::Task& task, int64_t tokens_max) const {
  ASSIGN_OR_RETURN(const PromptSlots slots, SlotsOf(task));
  const PromptTemplate& prompt = task.skill() == v1::SKILL_GENERATE ? generate_ : optimise_;
  ASSIGN_OR_RETURN(std::vector<int32_t> token_ids, prompt.Render(tokenizer_, slots));
  if (std::ssize(token_ids) > tokens_max) {
    return TaskError(task, absl::StrCat("has a prompt of ", token_ids.size(), " tokens; at most ", tokens_max,
                                        " leave room for the answer"));
  }
  return token_ids;
}

std::string PromptBuilder::Decode(std::span<const int32_t> token_ids) const {
  return tokenizer_.Decode(token_ids, DecodeSpecial::kSkip);
}

std::string AdviceText(v1::Advice advice) {
  if (advice == v1::ADVICE_UNSPECIFIED || !v1::Advice_IsValid(advice)) return "";
  const std::string name = v1::Advice_Name(advice);
  const std::string words = absl::AsciiStrToLower(absl::StripPrefix(name, "ADVICE_"));
  // As the reward service says it, and the pairs of the cold start: names leave the article out.
  return absl::StrReplaceAll(words, {{"avoid_", "avoid the "}, {"_", " "}});
}

}  // namespace warpsmith
