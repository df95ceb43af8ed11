// The Qwen3 decoder for training: packed sequences in, hidden states and token log-probabilities out, with
// gradients.
//
// Shapes: T tokens of all sequences together, D hidden_size, V vocab_size, B sequences.
#ifndef WARPSMITH_CORE_MODEL_QWEN3_H_
#define WARPSMITH_CORE_MODEL_QWEN3_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernels/thread_pool.h"
#include "core/model/packed_batch.h"
#include "core/model/parameters.h"

namespace warpsmith {

// What a policy loss needs of each token.
struct TokenScores {
  // [T], differentiable: log softmax(logits / temperature)[target], the softmax over
  // Qwen3Options::num_token_ids
  at::Tensor log_probs;
  at::Tensor entropy;  // [T], of the same distribution, in nats; carries no gradient
};

enum class Backend {
  kAuto,       // kernels where they exist (CPU; float32, float64), at:: operators elsewhere
  kOperators,  // at:: operators under plain autograd, on any device: the reference of the kernels' tests
};

struct Qwen3Options {
  Backend backend = Backend::kAuto;
  // Threads of the CPU kernels; must outlive the model and its graphs. Null: the calling thread alone.
  // Results do not depend on it.
  ThreadPool* pool = nullptr;
  // Ids that the tokenizer has, at most vocab_size; 0: vocab_size. Rows of the head behind them are
  // padding: in no softmax, without gradient.
  int64_t num_token_ids = 0;
};

// Stateless but for scratch memory that it reuses between steps: one thread at a time, forward and backward
// alike.
class Qwen3 {
 public:
  explicit Qwen3(const ModelConfig& config, Qwen3Options options = {});
  ~Qwen3();
  Qwen3(Qwen3&&) noexcept;
  Qwen3& operator=(Qwen3&&) noexcept;

  // Hidden states [T, D] after the final norm, in the parameters' dtype. Differentiable with respect to the
  // buffers of `parameters` that require a gradient (under at::NoGradGuard nothing is kept for backward).
  // `parameters` must not change before the backward pass.
  at::Tensor Forward(const Parameters& parameters, const PackedBatch& batch) const;

  // Scores of `targets` [N], one a row of `hidden` [N, D]. A negative target skips its row: score and entropy
  // 0, no gradient, no work. Logits exist for a chunk of rows at a time only, also backward.
  TokenScores TokenLogProbs(const Parameters& parameters, const at::Tensor& hidden,
                            const std::vector<int64_t>& targets, double temperature = 1.0) const;

  // All logits [N, V], padding included, differentiable through at:: operators only with
  // Backend::kOperators. For tests and evaluation.
  at::Tensor Logits(const Parameters& parameters, const at::Tensor& hidden) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_QWEN3_H_
