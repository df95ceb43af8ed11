// A decoder of a shape that the GPU's kernels have, small enough to be made in each test.
#ifndef WARPSMITH_TESTS_GPU_SMALL_DEVICE_MODEL_H_
#define WARPSMITH_TESTS_GPU_SMALL_DEVICE_MODEL_H_

#include "core/model/model_config.h"

namespace warpsmith {

inline ModelConfig SmallDeviceModel() {
  return {.vocab_size = 1024,
          .hidden_size = 256,
          .intermediate_size = 512,
          .num_hidden_layers = 3,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 128,
          .max_position_embeddings = 2048,
          .tie_word_embeddings = true};
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_SMALL_DEVICE_MODEL_H_
