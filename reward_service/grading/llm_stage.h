// The stage after judging, off every lane: asks a language model for its opinion of a correct candidate's
// rubric.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_LLM_STAGE_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_LLM_STAGE_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/grading/flight.h"
#include "reward_service/llm_judge/llm_client.h"
#include "reward_service/llm_judge/llm_judge.h"

namespace warpsmith {

struct LlmStageOptions {
  std::string model;
  LlmReplyFormat format = LlmReplyFormat::kJsonSchema;
  // From the end of a measurement to its opinion: waiting for a turn, both attempts and what lies between.
  absl::Duration timeout = absl::Seconds(30);
  // After so many opinions in a row that the endpoint failed to give it is left alone for a while.
  int num_failures_max = 5;
  absl::Duration pause = absl::Seconds(30);
};

// As LlmClient::Post.
using LlmPost = std::function<absl::StatusOr<LlmHttpReply>(const std::string& body, absl::Time deadline,
                                                           const std::function<bool()>& unwanted)>;

// Told what came of each request to the endpoint: "ok", "invalid_reply", "http_error", "timeout",
// "unreachable", "oversized" or "cancelled"; and of each opinion without a request: "no_turn" or "paused".
using LlmObserver = std::function<void(const char* result)>;

// Thread-safe: as many threads as may ask at once share it. Nothing here fails a grade: whatever happens, the
// flight has an opinion afterwards, or one that says why there is none.
class LlmStage {
 public:
  LlmStage(LlmStageOptions options, LlmPrompt prompt, LlmPost post, LlmObserver observer)
      : options_(std::move(options)),
        prompt_(std::move(prompt)),
        post_(std::move(post)),
        observer_(std::move(observer)) {}

  // Whether an opinion could change the grade: that of a program that is CORRECT and by its own work.
  static bool Wants(const PreparedRequest& prepared, const v1::Measurement& measurement);

  // Sets the flight's opinion, which it wants, and the time it took. The time counts from `queued_since`.
  void Run(Flight* flight) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends requests and waits that are under way; later ones fail at once.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What one request led to.
  struct Attempt {
    absl::StatusOr<LlmOpinion> opinion = absl::UnknownError("not asked");
    bool endpoint_failed = false;  // rather than what it wrote
    bool may_repeat = false;
    absl::Duration wait;  // before that
  };

  LlmOpinion Ask(const LlmQuestion& question, absl::Time deadline, const std::function<bool()>& unwanted);
  Attempt AskOnce(const std::string& body, absl::Time deadline, const std::function<bool()>& unwanted) const;
  Attempt ReadReply(const LlmHttpReply& reply) const;
  // False when stopped meanwhile.
  bool Wait(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Paused(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(bool endpoint_failed, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  const LlmStageOptions options_;
  const LlmPrompt prompt_;
  const LlmPost post_;
  const LlmObserver observer_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int num_failures_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time paused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// 16 hexadecimal digits that stand for endpoint, model, prompt and form of reply: opinions under different
// ones are not to be mixed.
std::string LlmJudgeKey(const std::string& url, const LlmStageOptions& options, const LlmPrompt& prompt);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_LLM_STAGE_H_
