// A dense decoder for training: packed sequences in, hidden states and token log-probabilities out, with
// gradients.
//
// Shapes: T tokens of all sequences together, D hidden_size, V vocab_size, B sequences.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_MODEL_H_
#define WARPSMITH_CORE_MODEL_TRAINING_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernels/thread_pool.h"
#include "core/model/backend.h"
#include "core/model/packed_batch.h"
#include "core/model/parameters.h"
#include "core/model/token_scores.h"

namespace warpsmith {

struct TrainingModelOptions {
  // Of the parameters. Kernels compute float32 and float64 on a CPU; operators these and bfloat16 anywhere.
  Placement placement;
  // Threads of the CPU kernels; must outlive the model and its graphs. Null: the calling thread alone.
  // Results do not depend on it.
  ThreadPool* pool = nullptr;
  // Ids that the tokenizer has, at most vocab_size; 0: vocab_size. Rows of the head behind them are
  // padding: in no softmax, without gradient.
  int64_t num_token_ids = 0;
};

// Stateless but for scratch memory that it reuses between steps: one thread at a time, forward and backward
// alike.
class TrainingModel {
 public:
  // The errors of CheckBackend.
  static absl::StatusOr<TrainingModel> Create(const ModelConfig& config, Backend backend,
                                              TrainingModelOptions options = {});
  ~TrainingModel();
  TrainingModel(TrainingModel&&) noexcept;
  TrainingModel& operator=(TrainingModel&&) noexcept;

  // Hidden states [T, D] after the final norm, in the parameters' dtype. Differentiable with respect to the
  // buffers of `parameters` that require a gradient (under at::NoGradGuard nothing is kept for backward).
  // `parameters` have the configuration and the placement that the model was made for; they must not change
  // before the backward pass.
  at::Tensor Forward(const Parameters& parameters, const PackedBatch& batch) const;

  // Scores of `targets` [N], one a row of `hidden` [N, D]. A negative target skips its row: score and entropy
  // 0, no gradient, no work. The kernels hold logits for a chunk of rows at a time only, also backward.
  // Scores of bfloat16 parameters are float32.
  TokenScores TokenLogProbs(const Parameters& parameters, const at::Tensor& hidden,
                            const std::vector<int64_t>& targets, double temperature = 1.0) const;

  // All logits [N, V], padding included, differentiable with Backend::kOperators only. For tests.
  at::Tensor Logits(const Parameters& parameters, const at::Tensor& hidden) const;

 private:
  struct State;
  explicit TrainingModel(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_MODEL_H_
