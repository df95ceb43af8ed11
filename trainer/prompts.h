// Prompts and answers of the cold start as token ids, made exactly as rollout workers make them.
#ifndef WARPSMITH_TRAINER_PROMPTS_H_
#define WARPSMITH_TRAINER_PROMPTS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/prompt_template.h"
#include "core/tokenizer/tokenizer.h"

namespace warpsmith {

// What fills the slots of a prompt; the last four are empty for skill 1.
struct PromptParts {
  std::string reference;
  std::string previous;
  std::string finding;
  std::string evidence;
  std::string advice;  // in the words of the prompt, e.g. "fuse passes"
};

// Immutable; safe to share between threads.
class Prompts {
 public:
  // Reads tokenizer.json, and generate.txt and optimise.txt. INVALID_ARGUMENT for a template with other slots
  // than its skill fills, and for a tokenizer without a token that ends an answer.
  static absl::StatusOr<Prompts> Load(const std::filesystem::path& tokenizer_directory,
                                      const std::filesystem::path& prompts_directory);

  // Skill 1: "reference" alone.
  absl::StatusOr<std::vector<int32_t>> Generate(const PromptParts& parts) const;

  // Skill 2.
  absl::StatusOr<std::vector<int32_t>> Optimise(const PromptParts& parts) const;

  // The answer followed by the token that ends it.
  absl::StatusOr<std::vector<int32_t>> Answer(const std::string& text) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  int32_t stop_token_id() const { return stop_token_id_; }

  // Over templates and tokenizer; equal to the prompts_sha256 of a worker with the same files.
  const std::string& sha256() const { return sha256_; }

 private:
  Prompts(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise, int32_t stop_token_id);

  Tokenizer tokenizer_;
  PromptTemplate generate_;
  PromptTemplate optimise_;
  int32_t stop_token_id_;
  std::string sha256_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PROMPTS_H_
