// One GradeBatch stream.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_BATCH_REACTOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_BATCH_REACTOR_H_

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/server/reception.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {

// Reads requests while fewer than kInFlightMax of this stream are being graded or written, so that a client
// that sends faster than it is served is held back by flow control. Owns itself: deleted when gRPC and the
// grader are done with it.
class BatchReactor final : public grpc::ServerBidiReactor<v1::GradeRequest, v1::GradeResponse> {
 public:
  BatchReactor(std::shared_ptr<const Tenant> tenant, const Reception* reception);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // One request that has no response yet.
  struct Slot {
    std::string request_id;
    uint64_t ticket = 0;
  };

  void Grade(const std::shared_ptr<Slot>& slot);
  void Respond(const std::shared_ptr<Slot>& slot, absl::StatusOr<v1::Grade> grade);
  // What gRPC is to do next, decided under the lock and done after it.
  void Continue() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<const Tenant> tenant_;
  const Reception* const reception_;
  v1::GradeRequest request_;  // of the read in progress: see reading_
  absl::Mutex mutex_;
  std::set<std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::GradeResponse> responses_
      ABSL_GUARDED_BY(mutex_);                    // the first is being written while writing_
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;  // request_ is gRPC's, or OnReadDone's
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no request will come any more
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
  bool done_ ABSL_GUARDED_BY(mutex_) = false;      // gRPC has forgotten us
  int num_outside_ ABSL_GUARDED_BY(mutex_) = 0;    // threads of the grader in Respond
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_BATCH_REACTOR_H_
