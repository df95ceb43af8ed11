#include "rollout_workers/openai_api/completion_request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json_depth.h"
#include "core/base/status_macros.h"
#include "rollout_workers/openai_api/request_fields.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

constexpr int64_t kIdMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kTokensMax = 1 << 30;
constexpr double kTemperatureMax = 100;
constexpr double kTopPMin = 1e-6;
constexpr char kNotSampled[] = "sampling has no such rule here; leave it out";
constexpr char kNoTools[] = "tools are not rendered here; leave it out";

// Fields that change nothing, and fields that do unless they have the value that switches them off.
void ReadWithoutEffect(RequestFields* fields) {
  fields->Ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
                  "prompt_cache_retention", "parallel_tool_calls", "request_id", "priority"});
  for (const char* const name : {"presence_penalty", "frequency_penalty", "min_tokens"}) {
    fields->Only(name, {0}, kNotSampled);
  }
  for (const char* const name : {"repetition_penalty", "length_penalty"})
    fields->Only(name, {1}, kNotSampled);
  fields->Only("logit_bias", {Json::object()}, kNotSampled);
  for (const char* const name : {"ignore_eos", "use_beam_search", "include_stop_str_in_output"}) {
    fields->Only(name, {false}, kNotSampled);
  }
  for (const char* const name : {"stop_token_ids", "bad_words"}) {
    fields->Only(name, {Json::array()}, kNotSampled);
  }
  for (const char* const name : {"skip_special_tokens", "spaces_between_special_tokens"}) {
    fields->Only(name, {true}, "text comes without special tokens; ask for logprobs to see them");
  }
  Json text_alone = Json::object();
  text_alone["type"] = "text";
  fields->Only("response_format", {text_alone}, "answers are free text here; leave it out");
}

void ReadSampling(RequestFields* fields, CompletionRequest* request) {
  request->temperature = fields->Number("temperature", 0, kTemperatureMax);
  request->top_p = fields->Number("top_p", kTopPMin, 1);
  if (const auto top_k = fields->Integer("top_k", -1, kIdMax)) {
    request->top_k = std::max(0, static_cast<int>(*top_k));  // -1 is off in vLLM
  }
  if (const auto seed =
          fields->Integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())) {
    request->seed = static_cast<uint64_t>(*seed);
  }
  request->min_p = fields->Number("min_p", 0, 1);
  request->num_choices = static_cast<int>(fields->Integer("n", 1, kChoicesMax).value_or(1));
  if (const auto best_of = fields->Integer("best_of", 1, kChoicesMax); best_of.has_value()) {
    if (*best_of != request->num_choices) fields->Fail("best_of", "must be n: all choices are returned");
  }
}

void ReadLength(RequestFields* fields, CompletionRequest* request) {
  std::optional<int64_t> tokens_max = fields->Integer("max_tokens", 1, kTokensMax);
  if (request->kind == ApiKind::kChat) {
    const auto other = fields->Integer("max_completion_tokens", 1, kTokensMax);
    if (other.has_value() && tokens_max.value_or(*other) != *other) {
      fields->Fail("max_completion_tokens", "and max_tokens differ; send one");
    }
    if (other.has_value()) tokens_max = other;
  }
  if (tokens_max.has_value()) request->tokens_max = static_cast<int>(*tokens_max);
}

void ReadStops(RequestFields* fields, CompletionRequest* request) {
  const Json* const stop = fields->Take("stop");
  if (stop == nullptr) return;
  for (const Json& each : stop->is_array() ? *stop : Json::array({*stop})) {
    const auto* const text = each.get_ptr<const std::string*>();
    if (text == nullptr || text->empty() || text->size() > kStopBytesMax) {
      return fields->Fail(
          "stop", absl::StrCat("is a text or a list of texts, each of 1 to ", kStopBytesMax, " bytes"));
    }
    request->stops.push_back(*text);
  }
  if (request->stops.size() > kStopsMax) {
    fields->Fail("stop", absl::StrCat("has ", request->stops.size(), " texts; at most ", kStopsMax));
  }
}

void ReadStream(RequestFields* fields, CompletionRequest* request) {
  request->stream = fields->Bool("stream").value_or(false);
  const Json* const options = fields->Take("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return fields->Fail("stream_options", "is no object");
  if (!request->stream) return fields->Fail("stream_options", "is for stream: true alone");
  RequestFields inner(options);
  request->include_usage = inner.Bool("include_usage").value_or(false);
  inner.Ignore({"include_obfuscation"});
  inner.Only("continuous_usage_stats", {false}, "usage comes once, last");
  if (const absl::Status fault = inner.Finish(); !fault.ok()) {
    fields->Fail("stream_options", absl::StrCat(": ", fault.message()));
  }
}

// A text, or a list of {"type": "text", "text": ...}, which are joined by a line break.
std::optional<std::string> ContentOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& part : content) {
    const bool is_text = part.is_object() && part.size() == 2 && part.value("type", Json()) == "text" &&
                         part.value("text", Json()).is_string();
    if (!is_text) return std::nullopt;
    texts.push_back(part["text"].get<std::string>());
  }
  return absl::StrJoin(texts, "\n");
}

absl::StatusOr<ChatMessage> ReadMessage(const Json& message, size_t index) {
  RequestFields fields(&message, absl::StrCat("messages[", index, "]."));
  ChatMessage read;
  read.role = fields.String("role").value_or("");
  if (read.role != "system" && read.role != "user" && read.role != "assistant") {
    fields.Fail("role", "must be system, user or assistant");
  }
  const Json* const content = fields.Take("content");
  const std::optional<std::string> text = content == nullptr ? std::nullopt : ContentOf(*content);
  if (!text.has_value()) fields.Fail("content", "must be a text or a list of text parts");
  read.content = text.value_or("");
  read.reasoning = fields.String("reasoning_content");
  fields.Ignore({"name"});  // no template shows it
  fields.Only("tool_calls", {Json::array()}, kNoTools);
  fields.Only("annotations", {Json::array()}, "is not rendered here; leave it out");
  RETURN_IF_ERROR(fields.Finish());
  return read;
}

absl::Status ReadMessages(RequestFields* fields, CompletionRequest* request) {
  const Json* const messages = fields->Take("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() || messages->size() > kMessagesMax) {
    fields->Fail("messages", absl::StrCat("must be a list of 1 to ", kMessagesMax, " messages"));
    return absl::OkStatus();
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    if (!(*messages)[i].is_object()) {
      fields->Fail(absl::StrCat("messages[", i, "]"), "is no object");
      break;
    }
    ASSIGN_OR_RETURN(ChatMessage message, ReadMessage((*messages)[i], i));
    request->messages.push_back(std::move(message));
  }
  return absl::OkStatus();
}

void ReadTemplateArguments(RequestFields* fields, CompletionRequest* request) {
  const Json* const arguments = fields->Take("chat_template_kwargs");
  if (arguments == nullptr) return;
  if (!arguments->is_object()) return fields->Fail("chat_template_kwargs", "is no object");
  RequestFields inner(arguments);
  request->chat.enable_thinking = inner.Bool("enable_thinking").value_or(true);
  request->chat.date = inner.String("date_string").value_or("");
  if (const absl::Status fault = inner.Finish(); !fault.ok()) {
    fields->Fail("chat_template_kwargs", absl::StrCat(": ", fault.message()));
  }
}

absl::Status ReadChat(RequestFields* fields, CompletionRequest* request) {
  RETURN_IF_ERROR(ReadMessages(fields, request));
  ReadTemplateArguments(fields, request);
  request->log_probs = fields->Bool("logprobs").value_or(false);
  request->num_top_tokens = static_cast<int>(fields->Integer("top_logprobs", 0, kTopLogProbsMax).value_or(0));
  if (request->num_top_tokens > 0 && !request->log_probs)
    fields->Fail("top_logprobs", "is for logprobs: true alone");
  for (const char* const name : {"tools", "functions"}) fields->Only(name, {Json::array()}, kNoTools);
  for (const char* const name : {"tool_choice", "function_call"}) {
    fields->Only(name, {"none", "auto"}, kNoTools);
  }
  fields->Only("modalities", {Json::array({"text"})}, "answers are text here; leave it out");
  fields->Only("add_generation_prompt", {true}, "an answer begins behind the messages; leave it out");
  for (const char* const name : {"continue_final_message", "echo", "add_special_tokens"}) {
    fields->Only(name, {false}, "an answer begins behind the messages; leave it out");
  }
  return absl::OkStatus();
}

bool IsIdList(const Json& list) {
  return list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), [](const Json& id) {
           return id.is_number_unsigned() && id.get<uint64_t>() <= uint64_t{kIdMax};
         });
}

std::optional<TextPrompt> PromptOf(const Json& prompt) {
  if (prompt.is_string() && !prompt.get_ref<const std::string&>().empty()) return prompt.get<std::string>();
  if (IsIdList(prompt)) return prompt.get<std::vector<int32_t>>();
  return std::nullopt;
}

void ReadPrompts(RequestFields* fields, CompletionRequest* request) {
  constexpr char kForm[] = "must be a text or a list of token ids, or a list of such; none of them empty";
  const Json* const prompt = fields->Take("prompt");
  if (prompt == nullptr) return fields->Fail("prompt", kForm);
  const bool is_list = prompt->is_array() && !IsIdList(*prompt);
  for (const Json& each : is_list ? *prompt : Json::array({*prompt})) {
    std::optional<TextPrompt> read = PromptOf(each);
    if (!read.has_value()) return fields->Fail("prompt", kForm);
    request->prompts.push_back(*std::move(read));
  }
  if (request->prompts.empty()) return fields->Fail("prompt", kForm);
  if (request->prompts.size() > kPromptsMax) {
    fields->Fail("prompt", absl::StrCat("has ", request->prompts.size(), " prompts; at most ", kPromptsMax));
  }
}

void ReadText(RequestFields* fields, CompletionRequest* request) {
  ReadPrompts(fields, request);
  const std::optional<int64_t> log_probs = fields->Integer("logprobs", 0, kTopLogProbsMax);
  request->log_probs = log_probs.has_value();
  request->num_top_tokens = static_cast<int>(log_probs.value_or(0));
  fields->Only("echo", {false}, "an answer does not repeat its prompt; leave it out");
  fields->Only("suffix", {""}, "an answer has no suffix here; leave it out");
  fields->Only("add_special_tokens", {false}, "a prompt is taken as it is; write its marks into it");
}

}  // namespace

absl::StatusOr<CompletionRequest> ParseCompletionRequest(ApiKind kind, std::string_view body) {
  if (NestsDeeperThan(body)) return absl::InvalidArgumentError("the body nests too deeply");
  if (HasNul(body)) return absl::InvalidArgumentError("the body has a NUL byte, which JSON has not");
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the body is no JSON object");
  CompletionRequest request{.kind = kind};
  RequestFields fields(&json);
  if (const std::optional<std::string> model = fields.String("model")) {
    request.model = *model;
  } else {
    fields.Fail("model", "is missing; GET /v1/models names it");
  }
  if (kind == ApiKind::kChat) {
    RETURN_IF_ERROR(ReadChat(&fields, &request));
  } else {
    ReadText(&fields, &request);
  }
  ReadSampling(&fields, &request);
  ReadLength(&fields, &request);
  ReadStops(&fields, &request);
  ReadStream(&fields, &request);
  ReadWithoutEffect(&fields);
  RETURN_IF_ERROR(fields.Finish());
  return request;
}

}  // namespace warpsmith::openai
