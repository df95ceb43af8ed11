#include "core/model/training/layer_activations.h"

#include <utility>

namespace warpsmith {

template <typename T>
int64_t LayerActivations<T>::KeptSize(const ModelConfig& c, int64_t num_tokens, Recomputation recomputation) {
  int64_t size = 0;  // of a token
  if (KeepsInputs(recomputation)) size += c.qkv_size() + c.hidden_size;
  if (KeepsAttention(recomputation)) size += c.query_size() + c.num_attention_heads;
  if (KeepsMlp(recomputation)) size += 2 * c.intermediate_size;
  return num_tokens * size;
}

template <typename T>
int64_t LayerActivations<T>::SharedSize(const ModelConfig& c, int64_t num_tokens,
                                        Recomputation recomputation) {
  return KeptSize(c, num_tokens, Recomputation::kNone) - KeptSize(c, num_tokens, recomputation);
}

template <typename T>
LayerActivations<T> LayerActivations<T>::Bind(const ModelConfig& c, int64_t num_tokens,
                                              Recomputation recomputation, T* kept, T* shared) {
  const auto take = [&](bool keeps, int64_t size_of_token) {
    return std::exchange(keeps ? kept : shared, (keeps ? kept : shared) + num_tokens * size_of_token);
  };
  LayerActivations a;
  a.qkv = take(KeepsInputs(recomputation), c.qkv_size());
  a.attended = take(KeepsAttention(recomputation), c.query_size());
  a.middle = take(KeepsInputs(recomputation), c.hidden_size);
  a.gate_up = take(KeepsMlp(recomputation), 2 * c.intermediate_size);
  a.log_sum_exp = take(KeepsAttention(recomputation), c.num_attention_heads);
  return a;
}

template struct LayerActivations<float>;
template struct LayerActivations<double>;

}  // namespace warpsmith
