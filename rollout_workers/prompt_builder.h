// Turns a Task into the token ids that the Coder sees, and the Coder's tokens into text.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PROMPT_BUILDER_H_
#define WARPSMITH_ROLLOUT_WORKERS_PROMPT_BUILDER_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/prompt_template.h"
#include "core/tokenizer/tokenizer.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// The worker's one place for prompts. Immutable; safe to share between threads.
class PromptBuilder {
 public:
  // Reads `tokenizer_directory`/tokenizer.json and, of `prompts_directory`, generate.txt and optimise.txt.
  // The errors of their readers; INVALID_ARGUMENT for a template whose slots are not those of its skill, and
  // for a tokenizer without any token that ends an answer.
  static absl::StatusOr<PromptBuilder> Create(const std::filesystem::path& tokenizer_directory,
                                              const std::filesystem::path& prompts_directory);

  // Slots: reference and, for OPTIMISE, previous (programs, each ending in one newline), finding, evidence
  // (one line each) and advice (AdviceText). INVALID_ARGUMENT with the values for a task without skill or
  // reference, an OPTIMISE task without previous program or advice, and a prompt of more than `tokens_max`
  // tokens.
  absl::StatusOr<std::vector<int32_t>> Build(const v1::Task& task, int64_t tokens_max) const;

  // Text of an answer as valid UTF-8, special tokens left out.
  std::string Decode(std::span<const int32_t> token_ids) const;

  // Tokens that end an answer: <|im_end|> and <|endoftext|>, those of them that the tokenizer has.
  const std::vector<int32_t>& stop_token_ids() const { return stop_token_ids_; }
  int64_t vocabulary_size() const { return tokenizer_.vocab_size(); }
  // Of the digests of generate.txt, optimise.txt and tokenizer.json, in this order: trainer and worker must
  // agree.
  const std::string& sha256() const { return sha256_; }

 private:
  PromptBuilder(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise);

  Tokenizer tokenizer_;
  PromptTemplate generate_;
  PromptTemplate optimise_;
  std::vector<int32_t> stop_token_ids_;
  std::string sha256_;
};

// "fuse passes" for ADVICE_FUSE_PASSES: the words of the closed list as prompts have them.
std::string AdviceText(v1::Advice advice);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_PROMPT_BUILDER_H_
