// What a rollout worker does, without its gRPC service: requests in, groups out, each sample decoded and graded once.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WORKER_H_
#define WARPSMITH_ROLLOUT_WORKERS_WORKER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/bounded_queue.h"
#include "prompting/prompts.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/grade_client.h"
#include "rollout_workers/request_check.h"
#include "rollout_workers/request_table.h"

namespace warpsmith {

struct WorkerOptions {
  GenerateLimits limits;
  TableLimits table;
  // Requests under way; more are told to come back.
  int num_requests_max = 8;
  // Called once, from the engine's thread, when the GPU is lost and its jobs have failed. May be empty.
  std::function<void()> on_lost = nullptr;
};

// Owns the thread "ws-collect", which turns samples into text and sends them to be graded while the engine
// goes on. All members may be called from any thread.
class Worker {
 public:
  // One reader's place in the groups of a request.
  struct Reader {
    std::shared_ptr<HeldRequest> request;
    std::list<std::function<void()>>::iterator wake;
    size_t num_read = 0;
  };
  struct Next {
    // Set: the next group. Not set: none now.
    std::shared_ptr<const v1::GenerateGroupsResponse> response;
    // Set when no group will come any more.
    std::optional<absl::Status> end;
  };

  // `batch` is one of MakeBatch with the same `config` and `engine_options`. `prompts` must outlive this. The channel
  // goes to the reward service at `reward_address`.
  Worker(const ModelConfig& config, EngineOptions engine_options, std::unique_ptr<Batch> batch,
         WorkerOptions options, const Prompts* prompts, std::shared_ptr<grpc::Channel> reward_channel,
         const std::string& reward_address, GradeClientOptions grade_options);
  // No Reader may be left.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Begins a request, or joins the one that is held under its id, its groups from the first on. Where that
  // one has other tasks, or UNSCORABLE grades, the new one takes its place and what it has of the same tasks,
  // those grades aside; its readers end with ABORTED. `wake` is called whenever TakeNext may have more: without locks
  // held, from any thread, perhaps once more after Leave.
  //
  // INVALID_ARGUMENT: CheckRequest. FAILED_PRECONDITION: another version is loaded. RESOURCE_EXHAUSTED with
  // RetryInfo: enough is under way. UNAVAILABLE: draining.
  absl::StatusOr<Reader> Join(const v1::GenerateGroupsRequest& request, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Next TakeNext(Reader& reader) ABSL_LOCKS_EXCLUDED(mutex_);
  // With the last reader gone, decoding and grading stop. What has been done is held for a reader that joins again.
  void Leave(Reader reader) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses requests from now on, waits at most `timeout` for those under way, ends the rest with
  // UNAVAILABLE, and returns how many groups that cost.
  int Drain(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  Engine& engine() { return engine_; }
  const GradeClient& grades() const { return grades_; }

 private:
  // What the engine says: a sample or, where `failure` is set, the end of a job.
  struct Event {
    FinishedSample sample;
    std::optional<FailedJob> failure;
  };
  using Wakers = std::vector<std::function<void()>>;

  std::shared_ptr<HeldRequest> MakeRequest(const v1::GenerateGroupsRequest& request,
                                           const std::vector<absl::StatusOr<std::vector<int32_t>>>& prompts,
                                           const EngineStatus& status, Wakers* displaced)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StartWork(HeldRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopWork(HeldRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndIfComplete(HeldRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RequestGrade(int64_t job_id, v1::GradeRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Wakers WakersOf(const HeldRequest& request);

  void Enqueue(Event event);
  void Collect();
  void TakeSample(FinishedSample sample) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeFailure(const FailedJob& failure) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeGrade(int64_t job_id, const std::string& grade_request_id, const v1::Grade& grade)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const WorkerOptions options_;
  const Prompts* const prompts_;

  mutable absl::Mutex mutex_;  // taken before the locks of engine_ and grades_
  RequestTable table_ ABSL_GUARDED_BY(mutex_);
  int64_t last_job_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;

  BoundedQueue<Event> events_;
  GradeClient grades_;
  Engine engine_;
  std::thread collector_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WORKER_H_
