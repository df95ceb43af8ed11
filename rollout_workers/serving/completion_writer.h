// The answer to one request: whole, or as a stream of events.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_WRITER_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/rpc/http_server.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/openai_api/answer_text.h"
#include "rollout_workers/openai_api/completion_reply.h"
#include "rollout_workers/openai_api/completion_request.h"
#include "rollout_workers/serving/served_model.h"

namespace warpsmith::serving {

// Turns tokens into text and text into an answer, by the events of one job. Not thread-safe.
class CompletionWriter {
 public:
  // `model` must outlive this; `fingerprint` names the weights.
  CompletionWriter(const ServedModel* model, const openai::CompletionRequest& request,
                   const CompletionJob& job, const std::string& fingerprint,
                   std::shared_ptr<HttpExchange> exchange);

  // As CompletionEvents.
  bool Token(int choice, const ChosenToken& token);
  void End(int choice, FinishReason reason);
  void Fail(const absl::Status& status);

 private:
  void SendPiece(int choice, const std::string& finish_reason);
  void SendEvent(const std::string& event);
  void EndChoice(int choice, const std::string& finish_reason);
  void EndAll();
  bool IsStop(int32_t token_id) const;

  const ServedModel* const model_;
  const std::shared_ptr<HttpExchange> exchange_;
  const bool streams_;
  openai::ReplyHead head_;
  openai::Usage usage_;
  std::vector<openai::AnswerText> answers_;  // by choice
  std::vector<std::string> finish_reasons_;  // by choice; empty: open
  std::vector<bool> has_begun_;              // by choice: its first event is out
  size_t num_open_ = 0;
  bool stream_has_begun_ = false;
};

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_WRITER_H_
