// Calls to one rollout worker that transfer no groups.
#ifndef WARPSMITH_TRAINER_WORKERS_WORKER_CALLS_H_
#define WARPSMITH_TRAINER_WORKERS_WORKER_CALLS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/transfer_timeout.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "trainer/workers/published_weights.h"
#include "trainer/workers/wire.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {

inline constexpr absl::Duration kCallTimeout = absl::Minutes(2);

inline absl::Duration PrepareTimeout(const PublishedWeights& weights) {
  int64_t bytes = 0;
  for (const PublishedBuffer& buffer : weights.buffers) bytes += buffer.length_bytes;
  return TransferTimeout(bytes);
}

inline absl::Status PrepareWeights(v1::RolloutService::StubInterface& worker,
                                   const PublishedWeights& weights) {
  grpc::ClientContext context;
  SetTimeout(&context, PrepareTimeout(weights));
  v1::PrepareWeightsRequest request;
  *request.mutable_manifest() = ManifestToWire(weights);
  v1::PrepareWeightsResponse response;
  return FromGrpcStatus(worker.PrepareWeights(&context, request, &response));
}

inline absl::Status CommitWeights(v1::RolloutService::StubInterface& worker,
                                  const PublishedWeights& weights) {
  grpc::ClientContext context;
  SetTimeout(&context, kCallTimeout);
  v1::CommitWeightsRequest request;
  request.set_policy_version(weights.policy_version);
  v1::CommitWeightsResponse response;
  return FromGrpcStatus(worker.CommitWeights(&context, request, &response));
}

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_WORKER_CALLS_H_
