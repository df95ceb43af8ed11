// Prompts and answers as token ids: the one place that makes them, for training and for sampling.
#ifndef WARPSMITH_PROMPTING_PROMPTS_H_
#define WARPSMITH_PROMPTING_PROMPTS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/prompt_template.h"
#include "core/tokenizer/tokenizer.h"
#include "prompting/stop_tokens.h"

namespace warpsmith {

// What fills the slots of a prompt; those between the first and the last are empty for skill 1. Programs end in one
// newline in the prompt, finding and evidence are put on one line each.
struct PromptParts {
  std::string reference;
  std::string previous;
  std::string finding;
  std::string evidence;
  std::string advice;  // in the words of the prompt, e.g. "fuse passes"
  // Task.allowed_libraries, which prompts tell of that have a slot for them.
  std::vector<std::string> allowed_libraries = {};
};

// Immutable; safe to share between threads.
class Prompts {
 public:
  // Reads tokenizer.json, generate.txt and optimise.txt, and of the checkpoint that a run starts
  // from, where there is one, what ends its texts. The errors of the readers and of StopTokens;
  // INVALID_ARGUMENT for a template with other slots than its skill fills ("libraries" may be left out), and for marks
  // that are no tokens of the tokenizer, naming mark and file.
  static absl::StatusOr<Prompts> Load(const std::filesystem::path& tokenizer_directory,
                                      const std::filesystem::path& prompts_directory,
                                      const std::filesystem::path& model_directory);

  // Skill 1: "reference" alone, and "libraries".
  absl::StatusOr<std::vector<int32_t>> Generate(const PromptParts& parts) const;

  // Skill 2.
  absl::StatusOr<std::vector<int32_t>> Optimise(const PromptParts& parts) const;

  // The answer followed by the token that ends it.
  absl::StatusOr<std::vector<int32_t>> Answer(const std::string& text) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Any of these ends an answer. See StopTokens.
  const TokenIds& stop_token_ids() const { return stop_token_ids_; }
  // The one of them that SFT teaches: with which generate.txt ends its last turn before the answer; where it has none
  // of them, <|im_end|>, and where the tokenizer lacks that, the first.
  int32_t answer_end_id() const { return answer_end_id_; }
  // The tokenizer's files as a Coder that was trained with these prompts needs them: "eos_token" of
  // tokenizer_config.json and special_tokens_map.json is answer_end_id().
  std::vector<TokenizerFile> TokenizerFiles() const;

  // Of the digests of generate.txt, optimise.txt and tokenizer.json, in this order, and where a template has the slot
  // "libraries" of its two sentences, that without libraries first: trainer and worker must agree.
  const std::string& sha256() const { return sha256_; }

 private:
  Prompts(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise, TokenIds stop_token_ids);

  absl::StatusOr<std::vector<int32_t>> Render(const PromptTemplate& text, const PromptParts& parts,
                                              PromptSlots slots) const;

  Tokenizer tokenizer_;
  PromptTemplate generate_;
  PromptTemplate optimise_;
  TokenIds stop_token_ids_;
  int32_t answer_end_id_ = 0;
  std::string sha256_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_PROMPTING_PROMPTS_H_
