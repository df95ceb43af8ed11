#include "rollout_workers/openai_api/answer_text.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace warpsmith::openai {
namespace {

int64_t NumCharacters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

// Returns whether `byte` goes on with the character that `begun` begins.
bool GoesOn(std::string_view begun, char byte) {
  const std::string both = std::string(begun) + byte;
  return IncompleteUtf8Suffix(both) == both.size() || IsValidUtf8(both);
}

}  // namespace

// Behind what is certain; and behind a character that is cut short, which is U+FFFD, unless the token goes on with it.
int64_t AnswerText::OffsetOf(int32_t token_id) const {
  const std::string_view begun = decoder_.held_back();
  const std::string bytes = tokenizer_->DecodeBytes({&token_id, 1}, DecodeSpecial::kSkip);
  if (begun.empty() || bytes.empty() || GoesOn(begun, bytes[0])) return num_characters_;
  return num_characters_ + NumCharacters(ReplaceInvalidUtf8(begun));
}

void AnswerText::Record(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens, int64_t text_offset) {
  const auto bytes_of = [this](const int32_t& token_id) {
    return tokenizer_->DecodeBytes({&token_id, 1}, DecodeSpecial::kKeep);
  };
  AnswerToken shown{bytes_of(token.token_id), token.log_prob, text_offset, {}};
  for (const TokenLogProb& top : top_tokens)
    shown.alternatives.push_back({bytes_of(top.token_id), top.log_prob});
  piece_.tokens.push_back(std::move(shown));
  ++num_tokens_;
}

void AnswerText::Push(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens) {
  if (stopped()) return;
  Record(token, top_tokens, OffsetOf(token.token_id));
  const std::string text = decoder_.Push(token.token_id);
  num_characters_ += NumCharacters(text);
  piece_.text += stops_.Push(text);
}

void AnswerText::PushEnd(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens) {
  if (stopped()) return;
  Record(token, top_tokens, num_characters_ + NumCharacters(ReplaceInvalidUtf8(decoder_.held_back())));
}

void AnswerText::Finish() {
  piece_.text += stops_.Push(decoder_.Finish());
  piece_.text += stops_.Finish();
}

AnswerPiece AnswerText::Take() { return std::exchange(piece_, {}); }

}  // namespace warpsmith::openai
