#include "rollout_workers/serving/served_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "rollout_workers/openai_api/api_error.h"
#include "rollout_workers/serving/generation_defaults.h"

namespace warpsmith::serving {
namespace {

// As vLLM has it: a client that sends a tiny temperature wants no chance. Log-probs are then those of temperature 1.
constexpr double kGreedyBelow = 1e-5;
constexpr int kTextTokensDefault = 16;  // of POST /v1/completions, as OpenAI's reference has it

absl::StatusOr<int64_t> ContextOf(const ModelConfig& config, int64_t wanted) {
  const int64_t most = config.max_position_embeddings;
  if (wanted == 0) return std::min(most, kContextTokensDefault);
  if (wanted <= most) return wanted;
  return absl::InvalidArgumentError(
      absl::StrCat("--context is ", wanted, " and the model was made for ", most, " tokens"));
}

absl::StatusOr<std::vector<int32_t>> EncodePrompt(const ServedModel& model,
                                                  const openai::TextPrompt& prompt) {
  if (const auto* const text = std::get_if<std::string>(&prompt)) {
    return model.tokenizer.Encode(*text, SpecialTokens::kParse);
  }
  const auto& ids = std::get<std::vector<int32_t>>(prompt);
  for (const int32_t id : ids) {
    if (id < model.tokenizer.vocab_size()) continue;
    return openai::FieldError("prompt", absl::StrCat("has token id ", id, "; the tokenizer has ",
                                                     model.tokenizer.vocab_size(), " tokens"));
  }
  return ids;
}

absl::StatusOr<std::vector<int32_t>> EncodeChat(const ServedModel& model,
                                                const openai::CompletionRequest& request,
                                                const std::string& today) {
  if (!model.chat_template.ok()) {
    return absl::UnimplementedError(absl::StrCat(model.chat_template.status().message(),
                                                 "; POST /v1/completions takes a prompt that you wrote out"));
  }
  ChatOptions options = request.chat;
  options.today = today;
  return model.chat_template->Render(model.tokenizer, request.messages, options);
}

absl::Status ContextError(const ServedModel& model, int64_t prompt_tokens, int64_t answer_tokens) {
  absl::Status status = absl::InvalidArgumentError(
      absl::StrCat("the prompt has ", prompt_tokens, " tokens and the answer may have ", answer_tokens,
                   "; both together may have ", model.context_tokens_max,
                   ": shorten one, or serve with a larger --context"));
  openai::SetApiCode(&status, "context_length_exceeded");
  return status;
}

// Of a chat that names no limit, all that the context leaves.
absl::StatusOr<int> AnswerTokensMax(const ServedModel& model, const openai::CompletionRequest& request,
                                    int64_t prompt_tokens) {
  const int64_t left = model.context_tokens_max - prompt_tokens;
  const int64_t otherwise =
      request.kind == openai::ApiKind::kChat ? std::max<int64_t>(1, left) : kTextTokensDefault;
  const int64_t wanted = request.tokens_max.has_value() ? *request.tokens_max : otherwise;
  if (wanted > left) return ContextError(model, prompt_tokens, wanted);
  return static_cast<int>(wanted);
}

}  // namespace

absl::StatusOr<ServedModel> LoadServedModel(const std::filesystem::path& directory, const std::string& name,
                                            int64_t context_tokens_max) {
  ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfig(directory));
  ASSIGN_OR_RETURN(const int64_t context, ContextOf(config, context_tokens_max));
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(directory));
  if (tokenizer.vocab_size() > config.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(directory.string(), ": the tokenizer has ",
                                                   tokenizer.vocab_size(), " tokens and the model ",
                                                   config.vocab_size));
  }
  ASSIGN_OR_RETURN(TokenIds stop_token_ids, StopTokens(tokenizer, directory));
  ASSIGN_OR_RETURN(GenerationDefaults defaults, ReadGenerationDefaults(directory));
  absl::StatusOr<ChatTemplate> chat_template = ChatTemplate::Of(tokenizer);
  return ServedModel{.name = name,
                     .created = absl::ToUnixSeconds(absl::Now()),
                     .config = config,
                     .context_tokens_max = context,
                     .tokenizer = std::move(tokenizer),
                     .chat_template = std::move(chat_template),
                     .stop_token_ids = std::move(stop_token_ids),
                     .defaults = defaults.sampling,
                     .not_applied = std::move(defaults.not_applied)};
}

absl::StatusOr<CompletionJob> MakeCompletionJob(const ServedModel& model,
                                                const openai::CompletionRequest& request,
                                                const std::string& today) {
  CompletionJob job{.num_choices = request.num_choices, .seed = request.seed, .sampling = model.defaults};
  if (request.kind == openai::ApiKind::kChat) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodeChat(model, request, today));
    job.prompts.push_back(std::move(ids));
  }
  for (const openai::TextPrompt& prompt : request.prompts) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodePrompt(model, prompt));
    job.prompts.push_back(std::move(ids));
  }
  size_t longest = 0;
  for (const std::vector<int32_t>& prompt : job.prompts) longest = std::max(longest, prompt.size());
  ASSIGN_OR_RETURN(job.sampling.answer_tokens_max,
                   AnswerTokensMax(model, request, static_cast<int64_t>(longest)));
  if (request.temperature.has_value()) job.sampling.temperature = *request.temperature;
  if (job.sampling.temperature < kGreedyBelow) job.sampling.temperature = 0;
  if (request.top_p.has_value()) job.sampling.top_p = *request.top_p;
  if (request.min_p.has_value()) job.sampling.min_p = *request.min_p;
  if (request.top_k.has_value()) job.sampling.top_k = *request.top_k;
  job.reports_tokens = request.stream || !request.stops.empty();
  job.num_top_tokens = request.num_top_tokens;
  return job;
}

}  // namespace warpsmith::serving
