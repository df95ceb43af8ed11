// A prompt with named slots, as a text file: "<|im_start|>user\n{{task}}<|im_end|>\n".
#ifndef WARPSMITH_CORE_TOKENIZER_PROMPT_TEMPLATE_H_
#define WARPSMITH_CORE_TOKENIZER_PROMPT_TEMPLATE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tokenizer/tokenizer.h"

namespace warpsmith {

using PromptSlots = std::map<std::string, std::string>;

// Literal text, in which added tokens are parsed, and slots {{name}} of lower-case letters, digits and
// underscores, in whose text they never are: no slot can forge the format. Immutable.
//
// Token boundaries are forced at the added tokens of the literal text and nowhere else: between two of them,
// literals and slot texts are tokenised as the one text that they make together. So the ids are those of the
// rendered text wherever no slot holds the text of an added token. An added token is not found across the
// edge of a slot.
class PromptTemplate {
 public:
  // Reads a file, its byte order mark aside. NOT_FOUND; INVALID_ARGUMENT as Parse.
  static absl::StatusOr<PromptTemplate> Load(const std::filesystem::path& path);

  // INVALID_ARGUMENT, with line and column, for braces {{ that are no slot.
  static absl::StatusOr<PromptTemplate> Parse(std::string text);

  // The ids of the prompt. INVALID_ARGUMENT for a slot that is not given, or given and not there; the errors
  // of Tokenizer::EncodeParts.
  absl::StatusOr<std::vector<int32_t>> Render(const Tokenizer& tokenizer, const PromptSlots& slots) const;

  // The prompt as text, for logs and dumps; the same errors.
  absl::StatusOr<std::string> RenderText(const PromptSlots& slots) const;

  // Returns the marks of the literal text in their order, <|im_start|> and the like: "<|" to "|>" without spaces, also
  // with the wide bars of U+FF5C. Those of slots are text.
  std::vector<std::string> Marks() const;

  // INVALID_ARGUMENT naming the first mark that is not one token of `tokenizer`: it would be read as text.
  absl::Status CheckMarks(const Tokenizer& tokenizer) const;

  // The names of the slots, sorted, each once.
  std::vector<std::string> slot_names() const;

  // SHA-256 of the text of the template in hexadecimal.
  const std::string& sha256() const { return sha256_; }

 private:
  // Literal text, or the name of a slot.
  struct Part {
    std::string text;
    bool is_slot = false;
  };

  PromptTemplate() = default;
  absl::StatusOr<std::vector<TextPart>> Fill(const PromptSlots& slots) const;
  absl::Status CheckSlots(const PromptSlots& slots) const;

  std::vector<Part> parts_;
  std::string sha256_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_PROMPT_TEMPLATE_H_
