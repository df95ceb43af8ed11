// Weights of a version that a test can tell from those of every other.
#ifndef WARPSMITH_TESTS_SUPPORT_WEIGHTS_PATTERN_H_
#define WARPSMITH_TESTS_SUPPORT_WEIGHTS_PATTERN_H_

#include <cstdint>
#include <string>

#include "core/model/model_config.h"
#include "tests/gpu/small_device_model.h"

namespace warpsmith {

inline constexpr int64_t kPatternElements = int64_t{4} << 20;  // then it repeats

// Bits of element `index`, a finite bfloat16.
constexpr uint16_t PatternBits(uint64_t version, int64_t index) {
  const uint64_t at = static_cast<uint64_t>(index % kPatternElements) + 1;
  return static_cast<uint16_t>(((at * 0x9E3779B97F4A7C15 + version * 0xD6E8FEB86659FD93) >> 40) & 0x3FFF);
}

// "small", or the shape of a Qwen3: "8B".
inline ModelConfig PatternModel(const std::string& name) {
  if (name != "8B") return SmallDeviceModel();
  return {.vocab_size = 151936,
          .hidden_size = 4096,
          .intermediate_size = 12288,
          .num_hidden_layers = 36,
          .num_attention_heads = 32,
          .num_key_value_heads = 8,
          .head_dim = 128,
          .max_position_embeddings = 40960,
          .rope_theta = 1e6};
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_WEIGHTS_PATTERN_H_
