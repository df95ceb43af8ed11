// Small decoders and batches for tests. Torch is needed by whoever includes this.
#ifndef WARPSMITH_TESTS_SUPPORT_MODEL_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_MODEL_FIXTURE_H_

#include <cstdint>
#include <vector>

#include "core/base/counter_random.h"
#include "core/model/model_config.h"
#include "core/model/packed_batch.h"

namespace warpsmith {

// Odd sizes on purpose: no dimension is a multiple of a panel, and a query group has three heads.
inline ModelConfig OddConfig() {
  ModelConfig config;
  config.vocab_size = 101;
  config.hidden_size = 40;
  config.intermediate_size = 80;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  config.head_dim = 20;
  config.max_position_embeddings = 512;
  config.tie_word_embeddings = true;
  return config;
}

// The demo's shape: 1.1 million parameters.
inline ModelConfig DemoConfig() {
  ModelConfig config;
  config.vocab_size = 1536;
  config.hidden_size = 128;
  config.intermediate_size = 464;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 32;
  config.max_position_embeddings = 2048;
  config.tie_word_embeddings = true;
  return config;
}

inline std::vector<int64_t> RandomTokens(const ModelConfig& config, int64_t count, uint64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int64_t>(UniformWord(seed, i) % static_cast<uint64_t>(config.vocab_size)));
  }
  return tokens;
}

inline PackedBatch RandomBatch(const ModelConfig& config, const std::vector<int64_t>& lengths,
                               uint64_t seed) {
  PackedBatch batch;
  for (size_t i = 0; i < lengths.size(); ++i) batch.Append(RandomTokens(config, lengths[i], seed + i));
  return batch;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_MODEL_FIXTURE_H_
