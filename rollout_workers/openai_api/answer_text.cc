#include "rollout_workers/openai_api/answer_text.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace warpsmith::openai {
namespace {

int64_t NumCharacters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

}  // namespace

void AnswerText::Record(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens) {
  const auto bytes_of = [this](const int32_t& token_id) {
    return tokenizer_->DecodeBytes({&token_id, 1}, DecodeSpecial::kKeep);
  };
  AnswerToken shown{bytes_of(token.token_id), token.log_prob, num_characters_, {}};
  for (const TokenLogProb& top : top_tokens)
    shown.alternatives.push_back({bytes_of(top.token_id), top.log_prob});
  const int64_t length = NumCharacters(ReplaceInvalidUtf8(shown.bytes));
  piece_.tokens.push_back(std::move(shown));
  num_characters_ += length;
  ++num_tokens_;
}

void AnswerText::Push(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens) {
  if (stopped()) return;
  Record(token, top_tokens);
  piece_.text += stops_.Push(decoder_.Push(token.token_id));
}

void AnswerText::PushEnd(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens) {
  if (!stopped()) Record(token, top_tokens);
}

void AnswerText::Finish() {
  piece_.text += stops_.Push(decoder_.Finish());
  piece_.text += stops_.Finish();
}

AnswerPiece AnswerText::Take() { return std::exchange(piece_, {}); }

}  // namespace warpsmith::openai
