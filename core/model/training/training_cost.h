// Operations and memory of training on a GPU, worked out from the model's shape.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_TRAINING_COST_H_
#define WARPSMITH_CORE_MODEL_TRAINING_TRAINING_COST_H_

#include <cstdint>

#include "core/model/model_config.h"
#include "core/model/training/recomputation.h"

namespace warpsmith {

// Returns the floating-point operations of the forward and backward pass over a sequence of t tokens, s of them scored:
//   6 N t + 6 V D s + 6 L Q t^2
// N the elements of the layers' matrices, V vocab_size, D hidden_size, L layers, Q query_size. Causal attention counts
// once, and what is computed again does not (model FLOPs: Chowdhery et al., arXiv 2204.02311, appendix B).
double TrainingFlops(const ModelConfig& config, int64_t num_tokens, int64_t num_scored);

// Bytes of a GPU's memory.
struct TrainingMemory {
  int64_t state = 0;        // weights, masters, moments, sums of gradients, a reference
  int64_t activations = 0;  // of the largest micro-batch, its scratch among them
  int64_t libraries = 0;    // CUDA's context and the libraries' workspaces

  int64_t total() const { return state + activations + libraries; }
};

struct TrainingMemoryOptions {
  Recomputation recomputation = Recomputation::kNone;
  int64_t tokens_max = 0;           // of a micro-batch
  int64_t sequence_tokens_max = 0;  // of a sequence
  bool has_reference = false;
  bool deterministic = true;  // attention's sums in a fixed order, which take memory
};

// Returns what CudaTrainer takes, within a few per cent: each token is counted as scored.
TrainingMemory PlanTrainingMemory(const ModelConfig& config, const TrainingMemoryOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_TRAINING_COST_H_
