#include "rollout_workers/serving/completion_writer.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rollout_workers/openai_api/api_error.h"

namespace warpsmith::serving {
namespace {

// Only tells kept replies apart; nothing else depends on it.
std::string NewId(openai::ApiKind kind) {
  std::random_device device;
  return absl::StrCat(kind == openai::ApiKind::kChat ? "chatcmpl-" : "cmpl-",
                      absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8),
                      absl::Hex(device(), absl::kZeroPad8));
}

}  // namespace

CompletionWriter::CompletionWriter(const ServedModel* model, const openai::CompletionRequest& request,
                                   const CompletionJob& job, const std::string& fingerprint,
                                   std::shared_ptr<HttpExchange> exchange)
    : model_(model),
      exchange_(std::move(exchange)),
      streams_(request.stream),
      head_{.kind = request.kind,
            .id = NewId(request.kind),
            .created = absl::ToUnixSeconds(absl::Now()),
            .model = model->name,
            .fingerprint = fingerprint,
            .log_probs = request.log_probs,
            .num_top_tokens = request.num_top_tokens,
            .include_usage = request.include_usage},
      num_open_(job.prompts.size() * static_cast<size_t>(job.num_choices)) {
  for (const std::vector<int32_t>& prompt : job.prompts) usage_.prompt_tokens += std::ssize(prompt);
  for (size_t i = 0; i < num_open_; ++i) answers_.emplace_back(&model->tokenizer, request.stops);
  finish_reasons_.resize(num_open_);
  has_begun_.resize(num_open_);
}

bool CompletionWriter::Token(int choice, const ChosenToken& token) {
  openai::AnswerText& answer = answers_[choice];
  const TokenLogProb drawn = {token.token_id, token.log_prob};
  IsStop(token.token_id) ? answer.PushEnd(drawn, token.top_tokens) : answer.Push(drawn, token.top_tokens);
  if (answer.stopped()) {
    EndChoice(choice, "stop");
    return false;
  }
  if (streams_ && answer.has_text()) SendPiece(choice, "");
  return true;
}

void CompletionWriter::End(int choice, FinishReason reason) {
  EndChoice(choice, reason == FinishReason::kStop ? "stop" : "length");
}

void CompletionWriter::Fail(const absl::Status& status) {
  if (!stream_has_begun_) return exchange_->Respond(openai::ApiErrorResponse(status));
  SendEvent(openai::ErrorEvent(openai::ApiErrorBody(status)));
  exchange_->EndStream();
}

void CompletionWriter::SendPiece(int choice, const std::string& finish_reason) {
  std::string events = has_begun_[choice] ? "" : openai::BeginEvent(head_, choice);
  has_begun_[choice] = true;
  absl::StrAppend(&events, openai::PieceEvent(head_, choice, {answers_[choice].Take(), finish_reason}));
  SendEvent(events);
}

void CompletionWriter::SendEvent(const std::string& event) {
  if (stream_has_begun_) return exchange_->SendPiece(event);
  stream_has_begun_ = true;
  exchange_->BeginStream(
      {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}, .body = event});
}

void CompletionWriter::EndChoice(int choice, const std::string& finish_reason) {
  answers_[choice].Finish();
  usage_.completion_tokens += answers_[choice].num_tokens();
  finish_reasons_[choice] = finish_reason;
  if (streams_) SendPiece(choice, finish_reason);
  if (--num_open_ == 0) EndAll();
}

void CompletionWriter::EndAll() {
  if (streams_) {
    SendEvent(openai::UsageEvent(head_, usage_) + openai::DoneEvent());
    return exchange_->EndStream();
  }
  std::vector<openai::ReplyChoice> choices;
  for (size_t i = 0; i < answers_.size(); ++i) choices.push_back({answers_[i].Take(), finish_reasons_[i]});
  exchange_->Respond({.body = openai::WholeReply(head_, choices, usage_)});
}

bool CompletionWriter::IsStop(int32_t token_id) const {
  const TokenIds& stops = model_->stop_token_ids;
  return std::find(stops.begin(), stops.end(), token_id) != stops.end();
}

}  // namespace warpsmith::serving
