// One answer from tokens to text, as they are drawn.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_ANSWER_TEXT_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_ANSWER_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token_log_prob.h"
#include "core/tokenizer/streaming_decoder.h"
#include "core/tokenizer/tokenizer.h"
#include "rollout_workers/openai_api/stop_strings.h"

namespace warpsmith::openai {

// A token as a reply shows it.
struct AnswerToken {
  // Another that could have stood there.
  struct Alternative {
    std::string bytes;
    float log_prob = 0;
  };

  std::string bytes;  // special tokens included; need not be UTF-8
  float log_prob = 0;
  int64_t text_offset = 0;  // in characters of the text, of the first that has bytes of the token
  std::vector<Alternative> alternatives;  // most probable first; the token itself may be among them
};

// A piece of an answer: text, and the tokens since the last piece that made it. All pieces together are the
// answer; a character or a stop string that is cut across tokens comes with the piece that completes it.
struct AnswerPiece {
  std::string text;
  std::vector<AnswerToken> tokens;
};

// Not thread-safe.
class AnswerText {
 public:
  // `tokenizer` must outlive this.
  AnswerText(const Tokenizer* tokenizer, std::vector<std::string> stops)
      : tokenizer_(tokenizer), decoder_(tokenizer, DecodeSpecial::kSkip), stops_(std::move(stops)) {}

  // Takes a token, with what was most probable in its place; nothing more once stopped.
  void Push(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens = {});
  // Takes the token that ends the answer, which is no text of it.
  void PushEnd(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens = {});
  // Gives out what is held back; no token follows.
  void Finish();

  // What has come since the last call.
  AnswerPiece Take();

  bool stopped() const { return stops_.stopped(); }  // by a stop string
  bool has_text() const { return !piece_.text.empty(); }
  int64_t num_tokens() const { return num_tokens_; }

 private:
  void Record(TokenLogProb token, absl::Span<const TokenLogProb> top_tokens, int64_t text_offset);
  int64_t OffsetOf(int32_t token_id) const;

  const Tokenizer* tokenizer_;
  StreamingDecoder decoder_;
  StopStrings stops_;
  AnswerPiece piece_;
  int64_t num_tokens_ = 0;
  int64_t num_characters_ = 0;  // that are certain, also behind a stop string
};

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_ANSWER_TEXT_H_
