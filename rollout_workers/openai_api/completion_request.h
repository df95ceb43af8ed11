// What POST /v1/chat/completions and POST /v1/completions ask.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REQUEST_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tokenizer/chat_template.h"

namespace warpsmith::openai {

enum class ApiKind { kChat, kText };

// Text, in which the marks of a format are tokens, or the tokens themselves.
using TextPrompt = std::variant<std::string, std::vector<int32_t>>;

struct CompletionRequest {
  ApiKind kind = ApiKind::kChat;
  std::string model;
  std::vector<ChatMessage> messages;  // kChat
  ChatOptions chat;                   // kChat; without `today`
  std::vector<TextPrompt> prompts;    // kText
  int num_choices = 1;                // of each prompt
  // What is not given is the checkpoint's to say, or the engine's.
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0: off
  std::optional<double> min_p;
  std::optional<int> tokens_max;
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  bool log_probs = false;
  int num_top_tokens = 0;  // whose log-probs are wanted beside each token's
  bool stream = false;
  bool include_usage = false;  // with a stream
};

// Bounds of what one request may ask.
inline constexpr int kChoicesMax = 128;
inline constexpr size_t kPromptsMax = 128;
inline constexpr size_t kMessagesMax = 4096;
inline constexpr size_t kStopsMax = 16;
inline constexpr size_t kStopBytesMax = 1024;
inline constexpr int kTopLogProbsMax = 20;

// INVALID_ARGUMENT that names the field (see FieldError) for what is missing, of another type, out of bounds,
// or not known; also for a known one that asks for what no engine of ours does. Fields that change no answer
// are taken as they are.
absl::StatusOr<CompletionRequest> ParseCompletionRequest(ApiKind kind, std::string_view body);

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REQUEST_H_
