// What a dense decoder computes, as Hugging Face's `config.json` describes it: Qwen3, Qwen2 (and 2.5) or Llama.
//
// All three are pre-norm decoders with grouped-query attention, rotary positions and a SwiGLU MLP. They differ in
// qkv_bias and qk_norm, and Llama 3 stretches its angles:
//   Qwen3ForCausalLM  no bias, norms of query and key heads    "Qwen3 Technical Report", arXiv 2505.09388, section 2
//   Qwen2ForCausalLM  biases, no such norms                    "Qwen2 Technical Report", arXiv 2407.10671, section 2.2
//   LlamaForCausalLM  neither                                  "The Llama 3 Herd of Models", arXiv 2407.21783
// Source: transformers, configuration_*.py and modeling_*.py in models/{qwen3,qwen2,llama}.
#ifndef WARPSMITH_CORE_MODEL_MODEL_CONFIG_H_
#define WARPSMITH_CORE_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/rope_scaling.h"

namespace warpsmith {

// The names and defaults of Hugging Face; sizes have no default and must be given, but for num_key_value_heads in a
// config.json.
struct ModelConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 128;
  int64_t max_position_embeddings = 32768;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool tie_word_embeddings = false;
  // These three are no fields of a run's configuration: a checkpoint brings them, random weights are a Qwen3's.
  bool qkv_bias = false;  // the projections to query, key and value add a bias; that of the output never does
  bool qk_norm = true;    // each query and key head is normed before its rotation
  RopeScaling rope_scaling;

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  // Rows of the fused q, k, v projection.
  int64_t qkv_size() const { return query_size() + 2 * key_value_size(); }
  // Query heads that share a key and value head.
  int64_t group_size() const { return num_attention_heads / num_key_value_heads; }

  bool operator==(const ModelConfig&) const = default;
};

// Calls visit(name, pointer) for every number and tie_word_embeddings, in the order of a config.json.
template <typename Config, typename Visit>
void VisitFields(Config& config, const Visit& visit) {
  visit("vocab_size", &config.vocab_size);
  visit("hidden_size", &config.hidden_size);
  visit("intermediate_size", &config.intermediate_size);
  visit("num_hidden_layers", &config.num_hidden_layers);
  visit("num_attention_heads", &config.num_attention_heads);
  visit("num_key_value_heads", &config.num_key_value_heads);
  visit("head_dim", &config.head_dim);
  visit("max_position_embeddings", &config.max_position_embeddings);
  visit("rms_norm_eps", &config.rms_norm_eps);
  visit("rope_theta", &config.rope_theta);
  visit("tie_word_embeddings", &config.tie_word_embeddings);
}

// INVALID_ARGUMENT naming the field, its value and what is allowed. Beyond divisible sizes of 1 to 2^24:
// head_dim is even and intermediate_size a multiple of 16, the block in which gate and up rows interleave; at most
// 4096 layers and 10^13 parameters; not both qkv_bias and qk_norm, which no architecture above has.
absl::Status ValidateModelConfig(const ModelConfig& config);

// Reads the text of a `config.json`, with transformers' defaults: num_key_value_heads, for one, is num_attention_heads
// where it is absent or null. Refuses what is not computed, by name: another
// architecture or rope type, a bias that the architecture has not by default, sliding windows, another activation
// than silu, quantised weights, rotation of a part of a head.
absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json_text);

// ParseModelConfig of the config.json in `directory`; also the errors of ReadFile.
absl::StatusOr<ModelConfig> LoadModelConfig(const std::filesystem::path& directory);

// Text of a `config.json` that transformers loads as ArchitectureOf(config). `dtype` is "float32" or "bfloat16".
// `config` must be valid.
std::string WriteModelConfig(const ModelConfig& config, std::string_view dtype = "float32");

// The class of transformers that computes `config`, which must be valid: "Qwen3ForCausalLM".
std::string ArchitectureOf(const ModelConfig& config);

// Rows of the head that take part in softmax and sampling: `num_token_ids`, what the tokenizer has,
// or vocab_size where that is 0. Checks that it is not more.
int64_t NumTokenIds(const ModelConfig& config, int64_t num_token_ids);

// Number of scalars, tied embeddings counted once.
int64_t CountParameters(const ModelConfig& config);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_MODEL_CONFIG_H_
