// Completions by the engine: tokens to the request that asked, choice by choice.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_SERVICE_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/bounded_queue.h"
#include "core/model/model_config.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/engine.h"

namespace warpsmith::serving {

struct CompletionJob {
  std::vector<std::vector<int32_t>> prompts;  // token ids
  int num_choices = 1;                        // of each; choice c of prompt p is number p * num_choices + c
  // Decides all choices: of equal prompts they are then equal. Without, every choice is another.
  std::optional<uint64_t> seed;
  SamplingParameters sampling;
  // Tokens come as they are drawn; else those of a choice come together, at its end.
  bool reports_tokens = false;
  int num_top_tokens = 0;  // as GenerationJob
};

// A token of an answer, as DrawnToken has it.
struct ChosenToken {
  int32_t token_id = 0;
  float log_prob = 0;
  std::vector<TokenLogProb> top_tokens;
};

// All are called on the service's thread "ws-answer", and wait for nothing.
struct CompletionEvents {
  // A token of a choice. False: the choice ends with it, and nothing more of it follows.
  std::function<bool(int choice, const ChosenToken& token)> on_token;
  // The end of a choice, behind its last token.
  std::function<void(int choice, FinishReason reason)> on_end;
  // Nothing more comes of any choice.
  std::function<void(const absl::Status& status)> on_failure;
};

// Owns an engine. Members may be called from any thread.
class CompletionService {
 public:
  // As Engine: valid options, a batch of MakeBatch, no weights yet. `on_lost` as EngineEvents has it.
  CompletionService(const ModelConfig& config, const EngineOptions& options, std::unique_ptr<Batch> batch,
                    std::function<void()> on_lost = nullptr);
  // Gives up what is left without an event.
  ~CompletionService();
  CompletionService(const CompletionService&) = delete;
  CompletionService& operator=(const CompletionService&) = delete;

  // Begins a job; its number. Events may come before this returns. The errors of Engine::Submit, with
  // RESOURCE_EXHAUSTED as back-pressure (core/rpc/status.h); UNAVAILABLE once draining.
  absl::StatusOr<int64_t> Start(const CompletionJob& job, CompletionEvents events)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets a job and frees its slots; an event that is being told may still be. Unknown numbers are ignored.
  void Cancel(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses jobs from now on, waits at most `timeout` for those under way, fails the rest with UNAVAILABLE,
  // and returns how many those were.
  int Drain(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  Engine& engine() { return *engine_; }

 private:
  struct Running {
    CompletionEvents events;
    int num_choices = 0;  // of a prompt
    bool reports_tokens = false;
    std::vector<bool> open;  // by choice; the service's thread alone
    int num_open = 0;
  };
  using Event = std::variant<DrawnToken, FinishedSample, FailedJob>;

  void Enqueue(Event event);
  void Answer();
  void Tell(const DrawnToken& token);
  void Tell(const FinishedSample& sample);
  void Tell(const FailedJob& failure);
  std::shared_ptr<Running> Find(int64_t id) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndChoice(int64_t id, int choice, Running* running);
  bool NothingRuns() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_.empty(); }

  mutable absl::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<Running>> running_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;

  BoundedQueue<Event> events_;
  std::unique_ptr<Engine> engine_;
  std::thread answering_;
};

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_COMPLETION_SERVICE_H_
