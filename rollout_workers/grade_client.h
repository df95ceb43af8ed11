// Asks the reward service for grades while samples still decode, and does not give up lightly.
#ifndef WARPSMITH_ROLLOUT_WORKERS_GRADE_CLIENT_H_
#define WARPSMITH_ROLLOUT_WORKERS_GRADE_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/wait_lines.h"
#include "core/rpc/retry_policy.h"
#include "grpcpp/channel.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {

struct GradeClientOptions {
  // Grades that are asked for together; the others wait their turn here.
  int in_flight_max = 64;
  // Deadline of one attempt, time in the service's queue included.
  absl::Duration attempt_timeout = absl::Minutes(5);
  RetryOptions retries;
  WaitLineOptions lines;  // of CheckService
};

// What a run will ask of the service.
struct ServiceNeeds {
  std::string formula;                                                  // empty: the service's default
  v1::CandidateLanguage language = v1::CANDIDATE_LANGUAGE_UNSPECIFIED;  // then none is checked
  std::vector<v1::Device> devices;
};

// Asynchronous: nothing here waits but CheckService and the destructor. Any thread may call it.
class GradeClient {
 public:
  // Called once for each grade, from a thread of gRPC, with no lock of this class held.
  using Done = std::function<void(v1::Grade)>;

  // `channel` goes to a reward service; `service_name` names it in reasons.
  GradeClient(std::shared_ptr<grpc::Channel> channel, std::string service_name, GradeClientOptions options);
  // Cancels what is left, calling none of it done, and waits until gRPC has let go of it.
  ~GradeClient();
  GradeClient(const GradeClient&) = delete;
  GradeClient& operator=(const GradeClient&) = delete;

  // Has `request` graded on behalf of `owner`. A lost connection, a timed-out attempt or back-pressure is
  // tried again with the same request_id, within the bounds of the options; what then still fails is the
  // verdict UNSCORABLE with the reason, never a lost call.
  void Submit(int64_t owner, v1::GradeRequest request, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // The formula that `needs` mean, by name; waits at most `timeout` for the service's answer, and says so.
  // INVALID_ARGUMENT with the names that it has, where that is none; FAILED_PRECONDITION with what it grades, where it
  // lacks language or device; UNAVAILABLE when it does not answer.
  absl::StatusOr<std::string> CheckService(const ServiceNeeds& needs, absl::Duration timeout) const;

  // Cancels all of an owner's grades. A Done that is running at this moment still ends.
  void Cancel(int64_t owner) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call;
  using CallPointer = std::shared_ptr<Call>;

  std::vector<CallPointer> TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelStarted(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartAttempts(const std::vector<CallPointer>& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartAttempt(const CallPointer& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAttempt(const CallPointer& call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitForRetry(const CallPointer& call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const CallPointer& call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::Grade Unscorable(const Call& call, const absl::Status& status) const;

  const std::unique_ptr<v1::RewardService::Stub> stub_;
  const std::string service_name_;
  const GradeClientOptions options_;
  std::atomic<uint64_t> num_submitted_{0};

  absl::Mutex mutex_;
  std::deque<CallPointer> queued_ ABSL_GUARDED_BY(mutex_);
  std::set<CallPointer> started_ ABSL_GUARDED_BY(mutex_);  // in an attempt, or waiting for the next one
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool outage_logged_ ABSL_GUARDED_BY(mutex_) = false;  // one line an outage, not one a call
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_GRADE_CLIENT_H_
