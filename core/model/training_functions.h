// The parts of the decoder as autograd functions over the CPU kernels, one a decoder layer. A is float or
// double.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_FUNCTIONS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_FUNCTIONS_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/model/activation_pool.h"
#include "core/model/layer_training.h"
#include "core/model/token_scoring.h"

namespace warpsmith {

// What the functions of one model share. Outlives every graph that holds it.
template <typename A>
struct TrainingCore {
  TrainingCore(const ModelConfig& config, int64_t num_token_ids, ThreadPool* pool)
      : layout(config),
        num_token_ids(num_token_ids),
        pool(pool),
        layer(layout, pool),
        scoring(pool),
        memory(std::make_shared<ActivationPool>()) {}

  const ParameterLayout layout;
  const int64_t num_token_ids;  // rows of the head that are in the softmax
  ThreadPool* const pool;
  LayerTraining<A> layer;
  TokenScoring<A> scoring;
  std::shared_ptr<ActivationPool> memory;
};

template <typename A>
using TrainingCorePointer = std::shared_ptr<TrainingCore<A>>;
using BatchPointer = std::shared_ptr<const PackedBatch>;

// Rows [T, D] of the embedding buffer.
template <typename A>
at::Tensor ApplyEmbedding(const TrainingCorePointer<A>& core, const BatchPointer& batch,
                          const at::Tensor& flat);

// One decoder layer: [T, D] from x [T, D] and the layer's buffer.
template <typename A>
at::Tensor ApplyLayer(const TrainingCorePointer<A>& core, const BatchPointer& batch, const at::Tensor& x,
                      const at::Tensor& flat);

// The final norm: [T, D] from x [T, D] and the final buffer.
template <typename A>
at::Tensor ApplyFinalNorm(const TrainingCorePointer<A>& core, const at::Tensor& x, const at::Tensor& flat);

// Log-probabilities and entropies [N] of `targets` (negative: skipped), from hidden [N, D] and the buffer
// that holds the head at element `head_offset`.
template <typename A>
std::vector<at::Tensor> ApplyScoring(const TrainingCorePointer<A>& core, const at::Tensor& hidden,
                                     const at::Tensor& flat, int64_t head_offset,
                                     const std::vector<int64_t>& targets, double temperature);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_FUNCTIONS_H_
