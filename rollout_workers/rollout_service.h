// The gRPC service RolloutService of proto/warpsmith/v1/rollout_service.proto.
#ifndef WARPSMITH_ROLLOUT_WORKERS_ROLLOUT_SERVICE_H_
#define WARPSMITH_ROLLOUT_WORKERS_ROLLOUT_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout_workers/weights_switch.h"
#include "rollout_workers/worker.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {

// Converts, calls, converts back. GenerateGroups is a reactor and holds no thread; the others block one each.
class RolloutService final
    : public v1::RolloutService::WithCallbackMethod_GenerateGroups<v1::RolloutService::Service> {
 public:
  enum class State { kWithoutWeights, kReady, kDraining };
  struct Identity {
    std::string layout_sha256;
    std::string prompts_sha256;
    std::map<std::string, std::string> model_fields;  // FieldsOf (core/model/model_fields.h)
    std::vector<int32_t> stop_token_ids;
  };

  // `worker` and `weights` must outlive this.
  RolloutService(Worker* worker, WeightsSwitch* weights, Identity identity);

  // `on_change` is called now and whenever the state may have changed; requests are taken in kReady alone.
  void OnStateChange(std::function<void(State state)> on_change) ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::ServerWriteReactor<v1::GenerateGroupsResponse>* GenerateGroups(
      grpc::CallbackServerContext* context, const v1::GenerateGroupsRequest* request) override;
  grpc::Status PrepareWeights(grpc::ServerContext* context, const v1::PrepareWeightsRequest* request,
                              v1::PrepareWeightsResponse* response) override;
  grpc::Status CommitWeights(grpc::ServerContext* context, const v1::CommitWeightsRequest* request,
                             v1::CommitWeightsResponse* response) override;
  grpc::Status Sleep(grpc::ServerContext* context, const v1::SleepRequest* request,
                     v1::SleepResponse* response) override;
  grpc::Status Wake(grpc::ServerContext* context, const v1::WakeRequest* request,
                    v1::WakeResponse* response) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                     v1::DrainResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;

  // What the RPC does; for the end of the process. Returns the number of groups that were cancelled.
  int DrainNow(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void TellState() ABSL_LOCKS_EXCLUDED(mutex_);

  Worker* const worker_;
  WeightsSwitch* const weights_;
  const Identity identity_;
  absl::Mutex mutex_;
  std::function<void(State)> on_change_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_ROLLOUT_SERVICE_H_
