#include "rollout_workers/openai_api/answer_text.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace warpsmith {
namespace {

int64_t NumCharacters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

}  // namespace

void AnswerText::Record(int32_t token_id, float log_prob) {
  std::string bytes = tokenizer_->DecodeBytes({&token_id, 1}, DecodeSpecial::kKeep);
  const int64_t length = NumCharacters(ReplaceInvalidUtf8(bytes));
  piece_.tokens.push_back({std::move(bytes), log_prob, num_characters_});
  num_characters_ += length;
  ++num_tokens_;
}

void AnswerText::Push(int32_t token_id, float log_prob) {
  if (stopped()) return;
  Record(token_id, log_prob);
  piece_.text += stops_.Push(decoder_.Push(token_id));
}

void AnswerText::PushEnd(int32_t token_id, float log_prob) {
  if (!stopped()) Record(token_id, log_prob);
}

void AnswerText::Finish() {
  piece_.text += stops_.Push(decoder_.Finish());
  piece_.text += stops_.Finish();
}

AnswerPiece AnswerText::Take() { return std::exchange(piece_, {}); }

}  // namespace warpsmith
