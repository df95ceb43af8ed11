// One GenerateGroups call: writes groups as they are completed.
#ifndef WARPSMITH_ROLLOUT_WORKERS_GROUP_STREAM_H_
#define WARPSMITH_ROLLOUT_WORKERS_GROUP_STREAM_H_

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "rollout_workers/worker.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

// Lives until gRPC is done with the call. Waits for nothing: it moves when the worker has a group, when a
// write has ended, or when the call is cancelled.
class GroupStream final : public grpc::ServerWriteReactor<v1::GenerateGroupsResponse> {
 public:
  // Joins the request and begins to write. `worker` must outlive the call.
  static GroupStream* Start(Worker* worker, const v1::GenerateGroupsRequest& request);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit GroupStream(Worker* worker) : worker_(worker) {}

  void Join(const v1::GenerateGroupsRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Worker* const worker_;
  std::shared_ptr<GroupStream> self_;  // until OnDone

  absl::Mutex mutex_;  // taken before the worker's
  std::optional<Worker::Reader> reader_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const v1::GenerateGroupsResponse> writing_
      ABSL_GUARDED_BY(mutex_);  // null: no write under way
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_GROUP_STREAM_H_
