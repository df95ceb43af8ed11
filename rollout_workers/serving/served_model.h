// What is served: a checkpoint's tokenizer, format of conversations and defaults.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVED_MODEL_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVED_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/tokenizer.h"
#include "prompting/stop_tokens.h"
#include "rollout_workers/openai_api/completion_request.h"
#include "rollout_workers/serving/completion_service.h"

namespace warpsmith::serving {

// Immutable.
struct ServedModel {
  std::string name;
  int64_t created = 0;  // seconds since 1970
  ModelConfig config;
  int64_t context_tokens_max = 0;
  Tokenizer tokenizer;
  absl::StatusOr<ChatTemplate> chat_template;  // UNIMPLEMENTED: prompts of texts alone
  TokenIds stop_token_ids;
  // Read from the checkpoint's generation_config.json: see GenerationDefaults.
  SamplingParameters defaults;
  std::vector<std::string> not_applied;
};

inline constexpr int64_t kContextTokensDefault = 4096;

// Everything but the weights. `context_tokens_max` 0: what the model was made for, at most
// kContextTokensDefault. The errors of the readers; INVALID_ARGUMENT for a context over the model's, and for
// a tokenizer with more tokens than the model.
absl::StatusOr<ServedModel> LoadServedModel(const std::filesystem::path& directory, const std::string& name,
                                            int64_t context_tokens_max);

// The job that `request` asks for. INVALID_ARGUMENT where it does not fit the context (code
// context_length_exceeded) or has ids that are none; UNIMPLEMENTED for a conversation whose format is not
// known. `today` is the date for templates that show one.
absl::StatusOr<CompletionJob> MakeCompletionJob(const ServedModel& model,
                                                const openai::CompletionRequest& request,
                                                const std::string& today);

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVED_MODEL_H_
