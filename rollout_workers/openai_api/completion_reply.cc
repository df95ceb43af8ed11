#include "rollout_workers/openai_api/completion_reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string Event(const Json& json) { return absl::StrCat("data: ", Text(json), "\n\n"); }

Json Bytes(const std::string& bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

// JSON has no infinity; OpenAI's API has this in its place.
float Finite(float log_prob) { return std::max(log_prob, -9999.0F); }

Json ChatToken(const std::string& bytes, float log_prob) {
  return {{"token", ReplaceInvalidUtf8(bytes)}, {"logprob", Finite(log_prob)}, {"bytes", Bytes(bytes)}};
}

Json ChatLogProbs(const std::vector<AnswerToken>& tokens) {
  Json content = Json::array();
  for (const AnswerToken& token : tokens) {
    Json shown = ChatToken(token.bytes, token.log_prob);
    Json& top = shown["top_logprobs"] = Json::array();
    for (const auto& other : token.alternatives) top.push_back(ChatToken(other.bytes, other.log_prob));
    content.push_back(std::move(shown));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// By text, and of equal texts the most probable; the token itself is always there.
Json TopByText(const AnswerToken& token) {
  Json top = Json::object();
  const auto add = [&top](const std::string& bytes, float log_prob) {
    top.emplace(ReplaceInvalidUtf8(bytes), Finite(log_prob));
  };
  for (const auto& other : token.alternatives) add(other.bytes, other.log_prob);
  add(token.bytes, token.log_prob);
  return top;
}

Json TextLogProbs(const std::vector<AnswerToken>& tokens, bool has_top) {
  Json texts = Json::array(), log_probs = Json::array(), offsets = Json::array();
  Json tops = has_top ? Json::array() : Json();
  for (const AnswerToken& token : tokens) {
    if (has_top) tops.push_back(TopByText(token));
    texts.push_back(ReplaceInvalidUtf8(token.bytes));
    log_probs.push_back(token.log_prob);
    offsets.push_back(token.text_offset);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(log_probs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

// The parts of a choice that are the same in a reply and in an event.
Json ChoiceFrame(const ReplyHead& head, int index, const ReplyChoice& choice) {
  Json log_probs;
  const std::vector<AnswerToken>& tokens = choice.piece.tokens;
  if (head.log_probs && !tokens.empty()) {
    log_probs =
        head.kind == ApiKind::kChat ? ChatLogProbs(tokens) : TextLogProbs(tokens, head.num_top_tokens > 0);
  }
  return {{"index", index},
          {"logprobs", std::move(log_probs)},
          {"finish_reason", choice.finish_reason.empty() ? Json() : Json(choice.finish_reason)}};
}

Json UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json Frame(const ReplyHead& head, const char* chat_object, Json choices) {
  return {{"id", head.id},
          {"object", head.kind == ApiKind::kChat ? chat_object : "text_completion"},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint},
          {"choices", std::move(choices)}};
}

std::string ChunkEvent(const ReplyHead& head, Json choices, const Json& usage) {
  Json chunk = Frame(head, "chat.completion.chunk", std::move(choices));
  if (head.include_usage) chunk["usage"] = usage;
  return Event(chunk);
}

Json ModelJson(const std::string& model, int64_t created, int64_t context_tokens_max) {
  return {{"id", model},
          {"object", "model"},
          {"created", created},
          {"owned_by", "warpsmith"},
          {"max_model_len", context_tokens_max}};
}

}  // namespace

std::string WholeReply(const ReplyHead& head, const std::vector<ReplyChoice>& choices, const Usage& usage) {
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    Json choice = ChoiceFrame(head, static_cast<int>(i), choices[i]);
    if (head.kind == ApiKind::kChat) {
      choice["message"] = {{"role", "assistant"}, {"content", choices[i].piece.text}, {"refusal", nullptr}};
    } else {
      choice["text"] = choices[i].piece.text;
    }
    list.push_back(std::move(choice));
  }
  Json reply = Frame(head, "chat.completion", std::move(list));
  reply["usage"] = UsageJson(usage);
  return Text(reply);
}

std::string BeginEvent(const ReplyHead& head, int index) {
  if (head.kind == ApiKind::kText) return "";
  Json choice = ChoiceFrame(head, index, {});
  choice["delta"] = {{"role", "assistant"}, {"content", ""}};
  return ChunkEvent(head, Json::array({std::move(choice)}), nullptr);
}

std::string PieceEvent(const ReplyHead& head, int index, const ReplyChoice& choice) {
  Json json = ChoiceFrame(head, index, choice);
  if (head.kind == ApiKind::kText) {
    json["text"] = choice.piece.text;
  } else {
    json["delta"] = choice.piece.text.empty() ? Json::object() : Json{{"content", choice.piece.text}};
  }
  return ChunkEvent(head, Json::array({std::move(json)}), nullptr);
}

std::string UsageEvent(const ReplyHead& head, const Usage& usage) {
  return head.include_usage ? ChunkEvent(head, Json::array(), UsageJson(usage)) : "";
}

std::string DoneEvent() { return "data: [DONE]\n\n"; }

std::string ErrorEvent(const std::string& error_body) { return absl::StrCat("data: ", error_body, "\n\n"); }

std::string ModelReply(const std::string& model, int64_t created, int64_t context_tokens_max) {
  return Text(ModelJson(model, created, context_tokens_max));
}

std::string ModelListReply(const std::string& model, int64_t created, int64_t context_tokens_max) {
  Json list = Json::array();
  list.push_back(ModelJson(model, created, context_tokens_max));
  return Text({{"object", "list"}, {"data", std::move(list)}});
}

}  // namespace warpsmith::openai
