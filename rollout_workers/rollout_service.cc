#include "rollout_workers/rollout_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/host_id.h"
#include "core/base/transfer_timeout.h"
#include "core/kernels/device_dtype.h"
#include "core/rpc/status.h"
#include "rollout_workers/group_stream.h"
#include "rollout_workers/placement.h"
#include "rollout_workers/weight_transport.h"
#include "rollout_workers/wire.h"

namespace warpsmith {
namespace {

// Bounds for callers that set none: how long a commit waits for samples to end, sleep and wake for a step, and a drain
// for requests.
constexpr absl::Duration kCommitTimeout = absl::Minutes(2);
constexpr absl::Duration kSleepTimeout = absl::Minutes(2);
constexpr absl::Duration kDrainTimeoutMax = absl::Hours(1);
constexpr absl::Duration kServiceTimeout = absl::Minutes(1);
// Left of a caller's deadline for the answer to travel.
constexpr absl::Duration kAnswerMargin = absl::Milliseconds(100);

absl::Time DeadlineOf(const grpc::ServerContext& context, absl::Duration timeout) {
  return std::min(absl::Now() + timeout, absl::FromChrono(context.deadline()) - kAnswerMargin);
}

int64_t BytesOf(const OfferedWeights& offered) {
  int64_t bytes = 0;
  for (const OfferedBuffer& buffer : offered.buffers)
    bytes += std::clamp(buffer.length_bytes, int64_t{0}, kTransferBytesMax);
  return bytes;
}

}  // namespace

RolloutService::RolloutService(Worker* worker, WeightsSwitch* weights, Identity identity)
    : worker_(worker), weights_(weights), identity_(std::move(identity)) {}

void RolloutService::OnStateChange(std::function<void(State)> on_change) {
  {
    absl::MutexLock lock(&mutex_);
    on_change_ = std::move(on_change);
  }
  TellState();
}

void RolloutService::TellState() {
  absl::MutexLock lock(&mutex_);
  if (!on_change_) return;
  const bool loaded = worker_->engine().status().loaded;
  on_change_(closing_ ? State::kDraining : loaded ? State::kReady : State::kWithoutWeights);
}

grpc::ServerWriteReactor<v1::GenerateGroupsResponse>* RolloutService::GenerateGroups(
    grpc::CallbackServerContext* context, const v1::GenerateGroupsRequest* request) {
  return GroupStream::Start(worker_, *request);
}

grpc::Status RolloutService::PrepareWeights(grpc::ServerContext* context,
                                            const v1::PrepareWeightsRequest* request,
                                            v1::PrepareWeightsResponse* response) {
  OfferedWeights offered = OfferedWeightsFromProto(request->manifest());
  offered.is_given_up = [context] { return context->IsCancelled(); };  // a publisher that dies, for one
  return ToGrpcStatus(weights_->Prepare(offered, DeadlineOf(*context, TransferTimeout(BytesOf(offered)))));
}

grpc::Status RolloutService::CommitWeights(grpc::ServerContext* context,
                                           const v1::CommitWeightsRequest* request,
                                           v1::CommitWeightsResponse* response) {
  const absl::Status status =
      weights_->Commit(request->policy_version(), DeadlineOf(*context, kCommitTimeout),
                       EntriesOnChangeFromProto(request->samples()));
  TellState();
  return ToGrpcStatus(status);
}

grpc::Status RolloutService::Sleep(grpc::ServerContext* context, const v1::SleepRequest* request,
                                   v1::SleepResponse* response) {
  const absl::Status status =
      weights_->Sleep(SleepDepthFromProto(request->depth()), DeadlineOf(*context, kSleepTimeout));
  TellState();
  return ToGrpcStatus(status);
}

grpc::Status RolloutService::Wake(grpc::ServerContext* context, const v1::WakeRequest* request,
                                  v1::WakeResponse* response) {
  const absl::Status status = weights_->Wake(DeadlineOf(*context, kSleepTimeout));
  TellState();
  return ToGrpcStatus(status);
}

grpc::Status RolloutService::Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                                   v1::DrainResponse* response) {
  const absl::Duration timeout = absl::Milliseconds(request->timeout_ms());
  if (timeout < absl::ZeroDuration() || timeout > kDrainTimeoutMax) {
    return ToGrpcStatus(
        absl::InvalidArgumentError(absl::StrCat("timeout_ms is ", request->timeout_ms(), "; give 0 to ",
                                                absl::ToInt64Milliseconds(kDrainTimeoutMax))));
  }
  response->set_num_cancelled(DrainNow(timeout));
  return grpc::Status::OK;
}

int RolloutService::DrainNow(absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  TellState();
  return worker_->Drain(timeout);
}

grpc::Status RolloutService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                                       v1::GetStatusResponse* response) {
  if (request->has_formula()) {
    const absl::Duration left = absl::FromChrono(context->deadline()) - kAnswerMargin - absl::Now();
    ServiceNeeds needs{.formula = request->formula(), .language = request->language()};
    for (const int device : request->devices()) needs.devices.push_back(static_cast<v1::Device>(device));
    absl::StatusOr<std::string> formula =
        worker_->grades().CheckService(needs, std::min(left, kServiceTimeout));
    if (!formula.ok()) return ToGrpcStatus(formula.status());
    response->set_formula(*std::move(formula));
  }
  const EngineStatus status = worker_->engine().status();
  response->set_policy_version(status.policy_version);
  response->set_layout_sha256(identity_.layout_sha256);
  response->set_prompts_sha256(identity_.prompts_sha256);
  response->mutable_model_fields()->insert(identity_.model_fields.begin(), identity_.model_fields.end());
  response->mutable_stop_token_ids()->Assign(identity_.stop_token_ids.begin(),
                                             identity_.stop_token_ids.end());
  const std::optional<CudaPlacement>& cuda = worker_->engine().cuda();
  response->set_weights_dtype(DtypeName(cuda.has_value() ? cuda->dtype : DeviceDtype::kFloat32));
  if (TakesCudaMemory(cuda)) response->set_cuda_memory_host(HostId());
  response->set_num_active_samples(status.num_active_samples);
  response->set_num_waiting_samples(status.num_waiting_samples);
  response->set_asleep(status.asleep);
  response->set_has_weights(status.loaded);
  response->set_draining(worker_->draining());
  response->set_num_tokens_decoded(status.num_tokens_decoded);
  response->set_decode_seconds(absl::ToDoubleSeconds(status.busy));
  response->set_context_tokens_max(worker_->engine().context_tokens_max());
  return grpc::Status::OK;
}

}  // namespace warpsmith
