// A decoder's training pass by the CPU kernels.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CPU_LAYERS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CPU_LAYERS_H_

#include <memory>
#include <vector>

#include "core/kernels/thread_pool.h"
#include "core/model/training/activation_pool.h"
#include "core/model/training/bound_layers.h"
#include "core/model/training/layer_training.h"
#include "core/model/training/recomputation.h"
#include "core/model/training/token_scoring.h"

namespace warpsmith {

// T is float or double. Scores and gradients have the same bits for each number of threads and each recomputation.
template <typename T>
class CpuLayers final : public BoundLayers<T, T> {
 public:
  // `pool` outlives this; null: the calling thread alone. `num_token_ids`: the ids that the tokenizer has; rows of the
  // head behind them are padding, in no softmax and without a gradient.
  CpuLayers(const ModelConfig& config, int64_t num_token_ids, ThreadPool* pool, Recomputation recomputation);

  absl::Status Begin(const ScoredBatch& batch, bool keeps_activations) override;
  absl::Status Embed() override;
  absl::Status ForwardLayer(int64_t layer) override;
  absl::Status Score(RowScores* scores) override;
  absl::Status BackwardHead(const std::vector<double>& log_prob_gradients) override;
  absl::Status BackwardLayer(int64_t layer) override;
  absl::Status BackwardEmbedding() override;

  // Writes the logits [T, V] of all rows, padding included, once the last layer has been computed. For tests.
  void Logits(T* logits);

 private:
  using BoundLayers<T, T>::layout_;
  using BoundLayers<T, T>::weights_;
  using BoundLayers<T, T>::gradients_;

  // Activations [T, D], or of a layer.
  using Block = ActivationPool::Block;

  const PackedBatch& packed() const { return batch_->packed; }
  int64_t num_tokens() const { return packed().num_tokens(); }
  int64_t state_size() const { return num_tokens() * layout_.config().hidden_size; }
  static T* At(const Block& block) { return static_cast<T*>(block.get()); }
  Block Take(int64_t size) { return ActivationPool::Take(memory_, size * sizeof(T)); }
  Block TakeZeros(int64_t size);
  LayerActivations<T> Activations(int64_t layer) const;
  const T* FinalNormWeight() const;
  // Writes hidden_ from the state behind the last layer.
  void FinalNorm();
  ScoringInput<T> Input() const;
  // The buffer that holds the head, and the head's place in it.
  int head_buffer() const;
  int64_t head_offset() const;

  const int64_t num_token_ids_;
  ThreadPool* const pool_;
  const Recomputation recomputation_;
  LayerTraining<T> layer_;
  TokenScoring<T> scoring_;
  std::shared_ptr<ActivationPool> memory_;

  // State of the pass under way.
  const ScoredBatch* batch_ = nullptr;
  bool keeps_ = false;
  Recomputation waits_ = Recomputation::kLayer;  // recomputation_, or kLayer where no backward pass follows
  std::vector<Block> states_;                    // [T, D] before each layer and behind the last
  std::vector<Block> kept_;                      // of each layer
  Block shared_;                                 // activations that do not wait
  Block hidden_;                                 // [T, D] behind the final norm
  Block gradient_;                               // [T, D] of the state that the backward pass has reached
  ScoringInput<T> input_;
  std::vector<T> log_sum_exp_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CPU_LAYERS_H_
