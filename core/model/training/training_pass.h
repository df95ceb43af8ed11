// A decoder's pass over one batch: forward to scores, backward from their gradients. No graph is kept: a token's loss
// gradient is closed-form, and a layer's backward pass is written by hand.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_TRAINING_PASS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_TRAINING_PASS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/training/layer_compute.h"

namespace warpsmith {

// Returns d loss / d log_prob [T] for the scores [T] of a batch.
using LossGradient = absl::FunctionRef<std::vector<double>(const RowScores&)>;

// The errors are those of `layers`, and INVALID_ARGUMENT for a batch whose lengths do not fit together.
absl::StatusOr<RowScores> ScoreBatch(LayerCompute& layers, const ScoredBatch& batch);

// Adds the gradient of a loss over `batch` to the sums of `layers`. `loss` is called once, between the two passes.
absl::Status AccumulateGradient(LayerCompute& layers, const ScoredBatch& batch, LossGradient loss);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_TRAINING_PASS_H_
