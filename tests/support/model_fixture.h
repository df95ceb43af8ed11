// Small decoders and batches for tests. Torch is needed by whoever includes this.
#ifndef WARPSMITH_TESTS_SUPPORT_MODEL_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_MODEL_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>
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

struct NamedConfig {
  std::string name;
  ModelConfig config;
};

// `heads` query heads, `key_value_heads` of the other; with `hidden_size` 40 none is as wide as transformers' default.
inline ModelConfig WithHeads(ModelConfig config, int64_t heads, int64_t key_value_heads, int64_t head_dim) {
  config.num_attention_heads = heads;
  config.num_key_value_heads = key_value_heads;
  config.head_dim = head_dim;
  return config;
}

inline constexpr int64_t kFirstTrainedPositions = 64;  // L of the scalings below

inline RopeScaling Llama3Scaling() {
  return {.type = RopeType::kLlama3,
          .factor = 8,
          .original_max_position_embeddings = kFirstTrainedPositions,
          .low_freq_factor = 1,
          .high_freq_factor = 4};
}

// beta_fast and beta_slow such that a ramp lies within the few pairs of a small head.
inline RopeScaling YarnScaling() {
  return {.type = RopeType::kYarn,
          .factor = 4,
          .original_max_position_embeddings = kFirstTrainedPositions,
          .beta_fast = 8,
          .beta_slow = 0.5,
          .attention_factor = 1.1386294361119891};  // 0.1 ln 4 + 1
}

// Every architecture, every scaling, groups of 1, 3, 5 and 8 query heads, tied and untied.
inline std::vector<NamedConfig> FamilyConfigs() {
  ModelConfig qwen2 = OddConfig(), llama = OddConfig();
  qwen2.qkv_bias = true;
  qwen2.qk_norm = llama.qk_norm = false;
  std::vector<NamedConfig> configs = {{"Qwen3", OddConfig()},
                                      {"Qwen3, yarn", WithHeads(OddConfig(), 3, 3, 24)},
                                      {"Qwen2", WithHeads(qwen2, 10, 2, 12)},
                                      {"Qwen2, yarn", WithHeads(qwen2, 8, 1, 16)},
                                      {"Llama, linear", WithHeads(llama, 5, 1, 20)},
                                      {"Llama, llama3", WithHeads(llama, 8, 1, 24)}};
  configs[1].config.rope_scaling = configs[3].config.rope_scaling = YarnScaling();
  configs[4].config.rope_scaling = {.type = RopeType::kLinear, .factor = 3};
  configs[5].config.rope_scaling = Llama3Scaling();
  for (const int untied : {1, 2, 5}) configs[untied].config.tie_word_embeddings = false;
  return configs;
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
