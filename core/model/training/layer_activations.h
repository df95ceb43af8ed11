// The memory of a layer's activations.
//
// Shapes: T tokens, D hidden_size, Q query_size, P qkv_size, I intermediate_size, H query heads.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_LAYER_ACTIVATIONS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_LAYER_ACTIVATIONS_H_

#include <cstdint>

#include "core/model/model_config.h"
#include "core/model/training/recomputation.h"

namespace warpsmith {

// Holds a layer's activations for the backward pass, in memory of the caller. Those that wait are kept; all other
// ones are written again in the backward pass, in memory that all layers may share.
template <typename T>
struct LayerActivations {
  T* qkv;          // [T, P] before norm and rotation
  T* attended;     // [T, Q]
  T* log_sum_exp;  // [H, T]
  T* middle;       // [T, D], behind the attention
  T* gate_up;      // [T, 2I]

  // Returns the elements of a batch of `num_tokens` that wait under `recomputation`, and those that do not.
  static int64_t KeptSize(const ModelConfig& config, int64_t num_tokens, Recomputation recomputation);
  static int64_t SharedSize(const ModelConfig& config, int64_t num_tokens, Recomputation recomputation);
  // Divides memory of these sizes.
  static LayerActivations Bind(const ModelConfig& config, int64_t num_tokens, Recomputation recomputation,
                               T* kept, T* shared);
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_LAYER_ACTIVATIONS_H_
