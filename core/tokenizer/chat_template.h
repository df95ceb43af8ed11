// Conversations as token ids, in the format that a checkpoint's model was trained on.
#ifndef WARPSMITH_CORE_TOKENIZER_CHAT_TEMPLATE_H_
#define WARPSMITH_CORE_TOKENIZER_CHAT_TEMPLATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/tokenizer.h"

namespace warpsmith {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
  // Of an assistant: what it thought before, where that is kept apart from the content. Qwen3 alone knows it.
  std::optional<std::string> reasoning;
};

struct ChatOptions {
  bool enable_thinking = true;  // Qwen3: whether the model may think before it answers
  // Llama 3.1 to 3.3: the date in the system message, e.g. "26 Jul 2024"; empty: what the template shows by
  // itself, a fixed day or today.
  std::string date;
  std::string today;
};

// A checkpoint carries its format as a program in Jinja (`chat_template`). We run no such program: we
// recognise the published families by what their programs hold, render those ourselves, and refuse the rest.
//
//   ChatML        <|im_start|>ROLE\nCONTENT<|im_end|>\n, a default system message where the program names one
//                 (Qwen2.5; Qwen3-Instruct-2507 without)
//   Qwen3         ChatML; earlier reasoning is left out, later one is put in <think>; may forbid thinking
//   Llama 3       <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>, contents trimmed; 3.1 and
//                 3.2 begin with a system message of dates
//
// A prompt ends where the assistant's answer begins. The marks of a format are tokens; what a message says
// never is, so that no message can forge the format. Wherever no content holds the text of an added token,
// text and ids are those of apply_chat_template() of the `transformers` package
// (tests/data/chat_templates). Tools are not rendered. Immutable.
class ChatTemplate {
 public:
  // From chat_template.jinja or tokenizer_config.json beside the tokenizer; a tokenizer without either that
  // has <|im_start|> and <|im_end|> speaks ChatML. UNIMPLEMENTED, with a reason, for any other, and for a format whose
  // marks are no tokens of the tokenizer: they would be read as text.
  static absl::StatusOr<ChatTemplate> Of(const Tokenizer& tokenizer);

  // From the text of a template alone.
  static absl::StatusOr<ChatTemplate> Recognise(std::string_view jinja);

  // INVALID_ARGUMENT for no message or another role; the errors of Tokenizer::EncodeParts. `tokenizer` is the
  // one that this was made of.
  absl::StatusOr<std::vector<int32_t>> Render(const Tokenizer& tokenizer,
                                              const std::vector<ChatMessage>& messages,
                                              const ChatOptions& options) const;

  // The same prompt as text.
  absl::StatusOr<std::string> RenderText(const std::vector<ChatMessage>& messages,
                                         const ChatOptions& options) const;

  // For people: "Qwen3", "ChatML", "Llama 3", "Llama 3 with dates".
  std::string name() const;

 private:
  enum class Family { kChatMl, kQwen3, kLlama3, kLlama3Dated };
  // Marks of the format, or what a message says.
  struct Piece {
    std::string text;
    SpecialTokens special_tokens;
  };
  using Pieces = std::vector<Piece>;

  ChatTemplate() = default;
  static absl::StatusOr<ChatTemplate> Written(const Tokenizer& tokenizer);
  bool RecogniseChatMl(const std::string& jinja);
  bool RecogniseLlama3(const std::string& jinja);
  absl::StatusOr<Pieces> Lay(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;
  void LayChatMl(const std::vector<ChatMessage>& messages, const ChatOptions& options, Pieces* pieces) const;
  void LayLlama3(const std::vector<ChatMessage>& messages, const ChatOptions& options, Pieces* pieces) const;

  Family family_ = Family::kChatMl;
  std::string default_system_;             // ChatML: empty where there is none
  std::optional<std::string> fixed_date_;  // Llama 3 with dates: shown instead of today's
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_CHAT_TEMPLATE_H_
