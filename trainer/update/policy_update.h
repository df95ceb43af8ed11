// One GRPO step's worth of optimiser steps.
#ifndef WARPSMITH_TRAINER_UPDATE_POLICY_UPDATE_H_
#define WARPSMITH_TRAINER_UPDATE_POLICY_UPDATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/distributed/control_plane.h"
#include "trainer/data/training_sequence.h"
#include "trainer/update/policy_loss.h"
#include "trainer/update/token_gradients.h"

namespace warpsmith {

struct PolicyUpdateOptions {
  PolicyLossOptions loss;
  PassOptions pass;
  int num_updates = 1;  // optimiser steps, on equal shares of the sequences in order
  double learning_rate = 0;
};

struct PolicyUpdateResult {
  PolicyLossSums sums;  // over all tokens, all ranks
  double gradient_norm =
      0;                // mean over the steps taken, before clipping; without one: of the last, not finite
  int num_taken = 0;    // optimiser steps
  int num_skipped = 0;  // optimiser steps left out because the gradient was not finite
};

// Log-probabilities of the answer tokens by sequence; empty for sequences of other ranks.
using SequenceLogProbs = std::vector<std::vector<double>>;

// Adds this rank's part of the gradient of the policy loss over all `sequences` to the sums of `policy`.
// `indices` are this rank's sequences; `old` and `reference` may be null: the present policy, and no
// reference.
absl::StatusOr<PolicyLossSums> AccumulatePolicyGradient(
    ModelTrainer& policy, const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
    const PolicyUpdateOptions& options, const SequenceLogProbs* old, const SequenceLogProbs* reference);

// Updates the policy on `sequences`, which every rank must have, in the same order. With one optimiser step
// the old policy is the present one and costs no forward pass of its own. Gradients are summed by
// `communicator`; figures, which are on the host, by `control`. REQUIRES: with a KL weight `policy` has a reference.
absl::StatusOr<PolicyUpdateResult> UpdatePolicy(ModelTrainer& policy,
                                                const std::vector<TrainingSequence>& sequences,
                                                const PolicyUpdateOptions& options,
                                                Communicator& communicator, ControlPlane& control);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_POLICY_UPDATE_H_
