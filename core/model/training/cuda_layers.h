// A decoder's training pass on a GPU: products by cuBLASLt, attention by a library, all else by kernels of our own.
//
// Shapes: T tokens of a batch, D hidden_size, Q query_size, P qkv_size, I intermediate_size. The formulas are those of
// layer_training.h.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CUDA_LAYERS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CUDA_LAYERS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernels/attention_inputs.h"
#include "core/kernels/training/matrix_product_cuda.h"
#include "core/model/layer_weights.h"
#include "core/model/parameter_layout.h"
#include "core/model/rotary_table.h"
#include "core/model/training/bound_layers.h"
#include "core/model/training/cuda_batch.h"
#include "core/model/training/cuda_head.h"
#include "core/model/training/device_arena.h"
#include "core/model/training/recomputation.h"
#include "core/model/training/training_attention.h"

namespace warpsmith {

struct CudaLayersOptions {
  int64_t num_token_ids = 0;  // see CpuLayers
  Recomputation recomputation = Recomputation::kNone;
  int64_t head_rows_max = 2048;  // rows whose logits are worked on at once
};

// T is __nv_bfloat16, or float for tests: what weights and activations are stored in. Sums of weights' gradients are
// float32. A pass repeated gives the same bits where the attention's does.
template <typename T>
class CudaLayers final : public BoundLayers<T, float> {
 public:
  // On the current device, in `stream`; this and `attention` outlive the result. INVALID_ARGUMENT for a model that the
  // kernels do not take: hidden_size or vocab_size no multiple of 8, head_dim none of 4 or above 256.
  static absl::StatusOr<std::unique_ptr<CudaLayers>> Create(const ModelConfig& config,
                                                            const CudaLayersOptions& options,
                                                            TrainingAttention<T>& attention,
                                                            cudaStream_t stream);
  ~CudaLayers() override;

  absl::Status Begin(const ScoredBatch& batch, bool keeps_activations) override;
  absl::Status Embed() override;
  absl::Status ForwardLayer(int64_t layer) override;
  absl::Status Score(RowScores* scores) override;
  absl::Status BackwardHead(const std::vector<double>& log_prob_gradients) override;
  absl::Status BackwardLayer(int64_t layer) override;
  absl::Status BackwardEmbedding() override;

 private:
  using BoundLayers<T, float>::layout_;
  using BoundLayers<T, float>::weights_;
  using BoundLayers<T, float>::gradients_;

  // A layer's own arrays, or those that all layers share.
  struct Kept {
    T* qkv = nullptr;      // [T, P] before norm and rotation
    T* middle = nullptr;   // [T, D], behind the attention
    T* gate_up = nullptr;  // [T, 2I]
    typename TrainingAttention<T>::Result attention;
  };
  // Arrays that all layers share.
  struct Shared {
    T* qkv;
    T* middle;
    T* gate_up;
    T* normed;             // [T, D]; backward: the gradient of a norm's result, then that result
    T* queries;            // [T, Q]
    T* keys;               // [T, K h]
    T* values;             // [T, K h]
    T* activated;          // [T, I]; backward: its gradient, then that
    T* gradient;           // [T, D] of the state that the backward pass has reached
    T* attended_gradient;  // [T, Q]
    float* parts;          // of the gradients of norms
  };
  CudaLayers(const ModelConfig& config, const CudaLayersOptions& options, TrainingAttention<T>& attention,
             cudaStream_t stream);

  int64_t num_tokens() const { return batch_.num_tokens(); }
  T* State(int64_t layer) const { return states_[keeps_ ? layer : layer % 2]; }
  CudaHeadWeights<T> HeadWeights() const;
  Kept& Of(int64_t layer) { return kept_[keeps_ ? layer : 0]; }
  AttentionShape Shape() const;
  AttentionHeads<T> Heads() const { return {shared_.queries, shared_.keys, shared_.values}; }

  void Place();
  absl::Status ReserveRotary();

  absl::Status Multiply(const MatrixProduct& product, const T* a, const T* b, void* c, std::string_view what,
                        const void* addend = nullptr);
  absl::Status Norm(const T* x, const T* weight, T* y);
  absl::Status NormBackward(const T* x, const T* weight, float* weight_gradient);
  AttentionInputs<T> InputsOf(const LayerPointers<const T>& weights, const Kept& kept) const;

  absl::Status Qkv(const LayerPointers<const T>& weights, int64_t layer, Kept& kept);
  absl::Status Rotate(const LayerPointers<const T>& weights, const Kept& kept);
  absl::Status Attend(const LayerPointers<const T>& weights, Kept& kept);
  absl::Status Middle(const LayerPointers<const T>& weights, int64_t layer, Kept& kept);
  absl::Status GateUp(const LayerPointers<const T>& weights, Kept& kept);
  absl::Status Recompute(const LayerPointers<const T>& weights, int64_t layer, Kept& kept);
  absl::Status BackwardMlp(const LayerPointers<const T>& weights, const LayerPointers<float>& gradients,
                           const Kept& kept);
  absl::Status BackwardAttention(const LayerPointers<const T>& weights, const LayerPointers<float>& gradients,
                                 int64_t layer, Kept& kept);

  const CudaLayersOptions options_;
  TrainingAttention<T>& attention_;
  const cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::unique_ptr<MatrixProducts<T>> products_;
  std::optional<CudaHead<T>> head_;
  RotaryTable<float> rotary_;
  DeviceMemory rotary_memory_;
  int64_t num_positions_ = 0;

  // State of the pass under way.
  CudaBatch batch_;
  bool keeps_ = false;
  Recomputation waits_ = Recomputation::kLayer;
  DeviceArena activations_;
  std::vector<T*> states_;  // [T, D] before each layer and behind the last; two where none are kept
  std::vector<Kept> kept_;
  Shared shared_{};
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CUDA_LAYERS_H_
