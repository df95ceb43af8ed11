// A tiny checkpoint's folder without weights, and what is served of it.
#ifndef WARPSMITH_TESTS_SUPPORT_SERVED_MODEL_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_SERVED_MODEL_FIXTURE_H_

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "core/model/model_config.h"
#include "rollout_workers/serving/served_model.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

// Speaks ChatML with the tokenizer of the demo, 1,536 tokens.
inline ModelConfig ServedConfig() {
  return {.vocab_size = 1536,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512,
          .tie_word_embeddings = true};
}

inline void WriteServedFolder(const std::filesystem::path& folder,
                              const std::string& generation_config = "{}") {
  REQUIRE(WriteFileAtomically(folder / "config.json", WriteModelConfig(ServedConfig())).ok());
  REQUIRE(WriteFileAtomically(folder / "generation_config.json", generation_config).ok());
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(std::filesystem::path("datasets/tokenizer/small") / name, folder / name);
  }
}

inline serving::ServedModel TinyServedModel(int64_t context_tokens_max = 0) {
  const TemporaryDirectory folder;
  WriteServedFolder(folder.path());
  return serving::LoadServedModel(folder.path(), "tiny", context_tokens_max).value();
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SERVED_MODEL_FIXTURE_H_
