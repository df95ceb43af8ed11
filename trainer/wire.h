// Between the contracts and the trainer's own structs. The one header of the trainer that names both.
#ifndef WARPSMITH_TRAINER_WIRE_H_
#define WARPSMITH_TRAINER_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "trainer/group_generator.h"
#include "trainer/published_weights.h"
#include "trainer/transition.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

// The value of v1::Advice that `text` names in words, "fix bounds" or "avoid the temporary"; 0 for none.
int AdviceFromText(const std::string& text);

// All such texts, with commas between.
std::string AdviceTexts();

v1::Task TaskToWire(const Task& task);
Task TaskFromWire(const v1::Task& wire);

// The whole request but for its tasks, which are `request.tasks` at `indices`, in that order.
v1::GenerateGroupsRequest RequestToWire(const GenerateRequest& request, const std::vector<int>& indices);

// Checks what the update relies on: samples numbered 0 .. num_samples - 1, one finite log-prob for each
// answer token, a prompt, the policy version that was asked for. INTERNAL names what is wrong.
absl::StatusOr<TransitionGroup> GroupFromWire(const v1::TransitionGroup& wire,
                                              const GenerateRequest& request);

v1::WeightsManifest ManifestToWire(const PublishedWeights& weights);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WIRE_H_
