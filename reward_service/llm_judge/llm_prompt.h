// What the LLM judge is asked: a template of text with slots, filled with evidence and neutral programs.
#ifndef WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_PROMPT_H_
#define WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_PROMPT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// A program to give an opinion on. What it points to must outlive the use of it.
struct LlmQuestion {
  const v1::Task* task = nullptr;
  v1::CandidateLanguage language = v1::CANDIDATE_LANGUAGE_CPP;
  std::string_view source;
  // CORRECT, with the tables' rubric.
  const v1::Grade* grade = nullptr;
};

// The two messages of a chat.
struct LlmMessages {
  std::string system;
  std::string user;
};

// The measured facts in lines of text; nothing in it comes from a candidate.
std::string LlmEvidence(const v1::Task& task, const v1::Grade& grade);

// A template: "[system]" and "[user]" on lines of their own begin the two messages, "{{name}}" is a slot.
// Slots: nonce (in both); language, task, evidence, reference, previous, candidate (in the user's).
// Immutable, so thread-safe.
class LlmPrompt {
 public:
  // INVALID_ARGUMENT, naming the slot or part, where one is missing or unknown.
  static absl::StatusOr<LlmPrompt> Parse(std::string text);

  // Programs are neutral (neutral_source.h) and cut at kProgramBytesMax. `nonce` must be new and unguessable.
  LlmMessages Render(const LlmQuestion& question, std::string_view nonce) const;

  // SHA-256 of the template in hex.
  const std::string& sha256() const { return sha256_; }

  static constexpr size_t kProgramBytesMax = 48 << 10;

 private:
  std::string system_;
  std::string user_;
  std::string sha256_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_PROMPT_H_
