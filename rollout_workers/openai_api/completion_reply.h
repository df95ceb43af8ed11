// Replies of the API as JSON: whole, and as server-sent events.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REPLY_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REPLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rollout_workers/openai_api/answer_text.h"
#include "rollout_workers/openai_api/completion_request.h"

namespace warpsmith::openai {

// What stands in every reply to one request.
struct ReplyHead {
  ApiKind kind = ApiKind::kChat;
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::string fingerprint;  // "system_fingerprint": equal where the weights are
  bool log_probs = false;
  int num_top_tokens = 0;
  bool include_usage = false;
};

struct ReplyChoice {
  AnswerPiece piece;
  std::string finish_reason;  // "stop" or "length"; empty: the answer goes on
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

// The whole answer; choices in the order of their index.
std::string WholeReply(const ReplyHead& head, const std::vector<ReplyChoice>& choices, const Usage& usage);

// Events of a stream, "data: ...\n\n" each. The first of a choice tells the role (a chat alone); a piece;
// what it all came to (where it was asked for); the end; an error, after which nothing follows.
std::string BeginEvent(const ReplyHead& head, int index);
std::string PieceEvent(const ReplyHead& head, int index, const ReplyChoice& choice);
std::string UsageEvent(const ReplyHead& head, const Usage& usage);
std::string DoneEvent();
std::string ErrorEvent(const std::string& error_body);

// GET /v1/models, and GET /v1/models/ID.
std::string ModelReply(const std::string& model, int64_t created, int64_t context_tokens_max);
std::string ModelListReply(const std::string& model, int64_t created, int64_t context_tokens_max);

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_COMPLETION_REPLY_H_
