// The middle of the service: admits requests, compiles on some cores, judges on the lanes, answers.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_GRADER_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_GRADER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "reward_service/compiler/lru_cache.h"
#include "reward_service/grading/flight_queue.h"
#include "reward_service/grading/grade_journal.h"
#include "reward_service/grading/lane_slots.h"
#include "reward_service/grading/merge.h"
#include "reward_service/grading/recording_lanes.h"
#include "reward_service/grading/serving_lanes.h"
#include "reward_service/grading/stages.h"
#include "reward_service/grading/task_lanes.h"
#include "reward_service/grading/waiting/backlog_time.h"
#include "reward_service/measure/referee.h"

namespace warpsmith {

class LlmStage;

// Told of each grade once, when it is first given: not again where a request is repeated under its id. Called
// before the request's own GradeDone, without any lock held, from any thread.
using GradeObserver =
    std::function<void(const std::shared_ptr<const PreparedRequest>& prepared, const v1::Grade& grade)>;

struct GraderOptions {
  int num_compile_workers = 1;
  // Requests that may wait; one more is refused with RetryInfo: the time in which those are likely answered.
  int queue_capacity = 256;
  int64_t cache_bytes_max = int64_t{64} << 20;
  LanePolicyOptions policy;
  // Stamped on every Grade.
  v1::Environment environment;
  GradeObserver observer;
  // Keeps an answer for Recall() in a later life, before it is given. Called from any thread.
  std::function<void(const GradeRecord&)> keep;
  // Gives opinions on rubrics, at most `num_llm_requests` at once; null: the tables alone score. Must outlive
  // the grader.
  LlmStage* llm_stage = nullptr;
  int num_llm_requests = 1;
  // What a measurement means for a request. Called from any thread, without any lock held: it reads two programs.
  std::function<v1::Grade(const PreparedRequest& prepared, const v1::Measurement& measurement,
                          const LlmOpinion* opinion)>
      merge = MergeGrade;
  // How often a lane that is lost is tried again.
  absl::Duration revival_pause = absl::Seconds(30);
  // What work and waiting are measured by. Called from any thread.
  std::function<absl::Time()> now = [] { return absl::Now(); };
};

// What waits.
struct Backlog {
  int num_requests = 0;    // without an answer
  int num_to_compile = 0;  // measurements that no compile worker has taken
  int num_to_judge = 0;    // measurements that no lane has taken
  int num_to_ask = 0;      // measurements that wait to be shown to the LLM judge
  int num_lanes_lost = 0;  // lanes on which nothing is judged until they are there again
};

// Thread-safe. Each request passes compile and judge stages on threads of this object: compile workers on the
// cores that no lane holds, a thread for each judgement that a lane makes at once; correct candidates then
// an LLM judge's, where there is one.
// Requests that ask for the same measurement share it, in flight and afterwards, and so for opinions.
class Grader {
 public:
  // `compile_stage` must outlive this. One lane a judge stage; requests must be for a device that a lane has.
  Grader(const GraderOptions& options, const CompileStage* compile_stage,
         std::vector<std::unique_ptr<JudgeStage>> lanes);
  Grader(const Grader&) = delete;
  Grader& operator=(const Grader&) = delete;
  // Drains with no grace if nobody did.
  ~Grader();

  // Grades `prepared` and calls `done`, maybe before returning. Errors given to `done`: RESOURCE_EXHAUSTED
  // with RetryInfo when the queue or the tenant's part of it is full, INVALID_ARGUMENT when the id was used
  // for other content, UNAVAILABLE while draining, CANCELLED after Cancel(). Returns a ticket for Cancel().
  uint64_t Submit(std::shared_ptr<const PreparedRequest> prepared, GradeDone done);

  // An answer of a former life: its request has it again. Before the first Submit().
  void Recall(GradeRecord record);

  // Forgets a request whose caller is gone. Work that nobody else waits for stops.
  void Cancel(uint64_t ticket);

  // Refuses new requests and waits at most `grace` for those that were admitted; the others end with
  // UNAVAILABLE. Then stops all threads; a judgement that has begun is finished first, within its own limit.
  void Drain(absl::Duration grace);

  Backlog backlog() const;

 private:
  // What an id stands for; `grade` once it is known, so that a repeated request gets the same answer to the
  // byte.
  struct Identity {
    std::string content_sha256;
    std::shared_ptr<const v1::Grade> grade;
  };

  // What a request can be answered from at once: the grade given under its id before, or else a measurement, with an
  // opinion where one is wanted.
  struct Known {
    std::shared_ptr<const v1::Grade> grade;
    std::shared_ptr<const v1::Measurement> measurement;
    std::shared_ptr<const LlmOpinion> opinion;
  };

  // A grade on its way to whoever asked for it.
  struct Answer {
    std::shared_ptr<const PreparedRequest> prepared;
    v1::Grade grade;
    bool is_new = true;  // and not repeated from an earlier answer under the same id
    GradeDone done;
  };

  void CompileLoop();
  void JudgeLoop(JudgeStage* lane);
  // One of those that wait, once the lane has its device. `rests` becomes true where the lane is lost and others serve.
  void JudgeNext(JudgeStage* lane, LaneSlots* slots, RecentWork* recent, std::atomic<bool>* rests)
      ABSL_LOCKS_EXCLUDED(mutex_, choice_);
  void LlmLoop();
  Route Compile(const std::shared_ptr<Flight>& flight) ABSL_LOCKS_EXCLUDED(mutex_);
  Route Judge(JudgeStage* lane, const std::shared_ptr<Flight>& flight) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(const std::shared_ptr<Flight>& flight, Route next);
  FlightQueue& JudgeQueueOf(v1::Device device);
  void Finish(const std::shared_ptr<Flight>& flight);
  // Of the flight that answers a request.
  const std::string& KeyOf(const PreparedRequest& prepared) const {
    return options_.llm_stage != nullptr ? prepared.opinion_key : prepared.measurement_key;
  }
  bool WantsOpinion(const PreparedRequest& prepared, const v1::Measurement& measurement) const;
  // Remembers what may be given again; `measurement` may be null.
  void Keep(const Flight& flight, std::shared_ptr<const v1::Measurement> measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the request can be answered from, if anything; its id then stands for its content. INVALID_ARGUMENT when the
  // id stands for other content.
  absl::StatusOr<std::optional<Known>> Find(const PreparedRequest& prepared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets a request wait for its measurement, in a new flight or one under way. Takes `done` unless it fails.
  absl::StatusOr<uint64_t> Admit(const std::shared_ptr<const PreparedRequest>& prepared, GradeDone* done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer AnswerFrom(const std::shared_ptr<const PreparedRequest>& prepared, const Known& known)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The first answer under an id is that of all: another one gives way to it here.
  Answer MakeAnswer(const std::shared_ptr<const PreparedRequest>& prepared,
                    const v1::Measurement& measurement, const LlmOpinion* opinion)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Give(Answer answer) const ABSL_LOCKS_EXCLUDED(mutex_);
  // RESOURCE_EXHAUSTED with RetryInfo where one more request of the tenant may not wait.
  absl::Status CheckRoom(const PreparedRequest& prepared) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StopWaiting(const Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return num_waiting_ == 0; }

  const GraderOptions options_;
  const CompileStage* const compile_stage_;
  const std::vector<std::unique_ptr<JudgeStage>> lanes_;
  TaskLanes task_lanes_;
  RecordingLanes recording_;
  ServingLanes serving_;
  FlightQueue to_compile_;
  std::map<v1::Device, FlightQueue> to_judge_;  // a queue for each device of the lanes, made with this
  FlightQueue to_ask_;
  absl::Mutex choice_;  // of what a lane judges next; taken before a queue's lock
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  int num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> num_waiting_by_tenant_ ABSL_GUARDED_BY(mutex_);
  BacklogTime backlog_time_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);  // by KeyOf
  std::map<uint64_t, std::string> keys_ ABSL_GUARDED_BY(mutex_);                    // KeyOf by ticket
  // By PreparedRequest::identity_key().
  LruCache<Identity> identities_ ABSL_GUARDED_BY(mutex_);
  LruCache<std::shared_ptr<const v1::Measurement>> measurements_ ABSL_GUARDED_BY(mutex_);
  LruCache<std::shared_ptr<const LlmOpinion>> opinions_ ABSL_GUARDED_BY(mutex_);  // none that failed
  std::vector<std::thread> threads_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_GRADER_H_
