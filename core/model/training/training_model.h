// A dense decoder for training: batches in, scores and gradients out, by whichever code computes them.
//
// Shapes: T tokens of a batch, V vocab_size.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_TRAINING_MODEL_H_
#define WARPSMITH_CORE_MODEL_TRAINING_TRAINING_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/kernels/thread_pool.h"
#include "core/model/backend.h"
#include "core/model/packed_batch.h"
#include "core/model/parameters.h"
#include "core/model/training/recomputation.h"
#include "core/model/training/training_pass.h"

namespace warpsmith {

struct TrainingModelOptions {
  // The device of the parameters. Kernels compute float32 and float64 on a CPU, operators also bfloat16 and on a GPU.
  Placement placement;
  // Threads of the CPU kernels; must outlive the model. Null: the calling thread alone. Results do not depend on it.
  ThreadPool* pool = nullptr;
  // Ids that the tokenizer has, at most vocab_size; 0: vocab_size. Rows of the head behind them are
  // padding: in no softmax, without gradient.
  int64_t num_token_ids = 0;
  // The kernels follow it; autograd keeps what it needs.
  Recomputation recomputation = Recomputation::kNone;
};

// Stateless but for memory that it reuses from pass to pass. One thread at a time.
class TrainingModel {
 public:
  // The errors of CheckBackend.
  static absl::StatusOr<TrainingModel> Create(const ModelConfig& config, Backend backend,
                                              TrainingModelOptions options = {});
  ~TrainingModel();
  TrainingModel(TrainingModel&&) noexcept;
  TrainingModel& operator=(TrainingModel&&) noexcept;

  // Returns the scores of `batch`. REQUIRES, here and below: `parameters` have the configuration and the placement that
  // the model was made for. The errors of ScoreBatch.
  absl::StatusOr<RowScores> Score(const Parameters& parameters, const ScoredBatch& batch) const;

  // Adds the gradient of a loss over `batch` to the .grad of the parameters' buffers; see AccumulateGradient.
  absl::Status Accumulate(const Parameters& parameters, const ScoredBatch& batch, LossGradient loss) const;

  // Returns all logits [T, V], padding included. For tests.
  at::Tensor Logits(const Parameters& parameters, const PackedBatch& batch) const;

 private:
  struct State;
  explicit TrainingModel(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_TRAINING_MODEL_H_
