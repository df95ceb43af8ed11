// One decoder layer over packed sequences on a CPU: forward, and the backward pass by hand.
//
// Shapes: T tokens, D hidden_size, Q query_size, P qkv_size, I intermediate_size, H query heads, h head_dim.
// Forward, with N for RMSNorm, b for the bias that some models have (else 0) and R for the rotation of each head; the
// N of query and key heads is the identity in models without qk_norm:
//   qkv = N(x) Wqkv^T + b;  a = attention(R(N(q)), R(N(k)), v);  m = x + a Wo^T;  g = N(m) Wgu^T;  y = m +
//   swiglu(g) Wd^T
// Backward, from dy:
//   dg = swiglu'(g, dy Wd);  dm = dy + N'(m, dg Wgu);  da = dm Wo;  dqkv = N'R'(attention'(da));
//   dx = dm + N'(x, dqkv Wqkv);  dWd = dy^T swiglu(g),  dWgu = dg^T N(m),  dWo = dm^T a,  dWqkv = dqkv^T N(x),
//   db = sum of dqkv over the tokens
// Norms, rotation and swiglu are computed again from what is kept: they cost little beside the products.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_LAYER_TRAINING_H_
#define WARPSMITH_CORE_MODEL_TRAINING_LAYER_TRAINING_H_

#include <cstdint>
#include <vector>

#include "core/kernels/thread_pool.h"
#include "core/model/layer_weights.h"
#include "core/model/packed_batch.h"
#include "core/model/rotary_table.h"
#include "core/model/training/layer_activations.h"
#include "core/model/training/recomputation.h"

namespace warpsmith {

// Scratch memory and tables, reused from layer to layer. One thread at a time.
template <typename T>
class LayerTraining {
 public:
  LayerTraining(const ParameterLayout& layout, ThreadPool* pool);

  // y [T, D] from x [T, D]; `activations` are written.
  void Forward(const T* flat, const PackedBatch& batch, const T* x, const LayerActivations<T>& activations,
               T* y);

  // Writes those `activations` again that do not wait under `recomputation`, with the bits that Forward gave them.
  void Recompute(const T* flat, const PackedBatch& batch, const T* x, const LayerActivations<T>& activations,
                 Recomputation recomputation);

  // x_grad [T, D] is overwritten and is not y_grad; flat_grad, of the buffer's size, is added to.
  void Backward(const T* flat, const PackedBatch& batch, const T* x, const LayerActivations<T>& activations,
                const T* y_grad, T* x_grad, T* flat_grad);

 private:
  // Memory that lives for one call.
  struct BackwardMemory {
    T* input_normed;   // [T, D]
    T* middle_normed;  // [T, D]
    T* activated;      // [T, I]
    T* gate_up_grad;   // [T, 2I]
    T* middle_grad;    // [T, D]
    T* attended_grad;  // [T, Q]
    T* qkv_grad;       // [T, P]
    T* rotated;        // [T, P]: q and k after norm and rotation
  };

  BackwardMemory BindBackward(int64_t num_tokens);
  T* Scratch(int worker, int64_t size);
  T* Partials(int64_t rows);

  void QkvRows(const T* x, const PackedBatch& batch, const LayerActivations<T>& a, int64_t row, int64_t rows,
               int worker);
  void RotateHeads(const PackedBatch& batch, const T* qkv, int64_t token, int64_t first_group,
                   int64_t num_groups);
  void AttendGroup(const PackedBatch& batch, const LayerActivations<T>& a, int64_t sequence, int64_t group,
                   int worker);
  void MiddleRows(const T* x, const LayerActivations<T>& a, int64_t row, int64_t rows);
  void GateUpRows(const LayerActivations<T>& a, int64_t row, int64_t rows, T* normed);
  void MlpRows(const T* x, const LayerActivations<T>& a, int64_t row, int64_t rows, T* y, int worker);

  void MlpRowsBackward(const LayerActivations<T>& a, const T* y_grad, int64_t row, int64_t rows,
                       T* norm_partial, int worker);
  void AttendGroupBackward(const PackedBatch& batch, const LayerActivations<T>& a, int64_t sequence,
                           int64_t group, T* norm_partials, int worker);
  void RotateBackward(const PackedBatch& batch, const T* qkv, int64_t token, int64_t group, T* norm_partials);
  void InputRowsBackward(const T* x, int64_t row, int64_t rows, T* x_grad, T* norm_partial, T* bias_partial,
                         int worker);
  void WeightGradients(const LayerActivations<T>& a, const T* y_grad, int64_t num_tokens,
                       const LayerPointers<T>& grads);

  const ParameterLayout& layout_;
  const ModelConfig& config_;
  const KernelSet<T>& kernels_;
  ThreadPool* pool_;
  const T eps_;
  RotaryTable<T> rotary_;
  PackedLayer<T> packed_;
  BackwardMemory memory_{};
  std::vector<T> shared_;
  std::vector<T> partials_;
  std::vector<std::vector<T>> scratch_;  // by worker
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_LAYER_TRAINING_H_
