// Between the contracts and the trainer's own structs. The one header of the trainer that names both.
#ifndef WARPSMITH_TRAINER_WORKERS_WIRE_H_
#define WARPSMITH_TRAINER_WORKERS_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "trainer/data/group_generator.h"
#include "trainer/data/transition.h"
#include "trainer/workers/published_weights.h"
#include "trainer/workers/worker_identity.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

v1::Task TaskToWire(const Task& task);

// The whole request but for its tasks, which are `request.tasks` at `indices`, in that order.
v1::GenerateGroupsRequest RequestToWire(const GenerateRequest& request, const std::vector<int>& indices);

// The group of `task`, which is one of the request's. A transition that the update cannot take is dropped (see
// Transition::malformed): a token id outside the vocabulary, no prompt, more tokens than the request or the
// model allow, not one log-prob for each answer token, a log-prob that is not finite or above 0.
//
// INTERNAL where the group as a whole cannot be believed: it is of another task, its samples are not numbered
// 0 to num_samples - 1, or another policy version than asked for decoded one of them.
absl::StatusOr<TransitionGroup> GroupFromWire(const v1::TransitionGroup& wire, const Task& task,
                                              const GenerateRequest& request, const TransitionLimits& limits);

// The worker at `address`, as it says itself.
WorkerIdentity IdentityFromWire(const std::string& address, const v1::GetStatusResponse& wire);

v1::WeightsManifest ManifestToWire(const PublishedWeights& weights);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_WIRE_H_
