// Where every parameter lies: one padded flat buffer a decoder layer, plus "embedding" and "final".
//
// Matrices are stored as Hugging Face has them, [out, in] row-major, but fused and reordered into
// tensor-parallel blocks:
//   qkv      by KV group: the group's query heads, its key head, its value head; qkv_bias likewise
//   gate_up  16 rows of gate_proj, then the same 16 rows of up_proj, and so on
// so that a rank's share of either is one contiguous range, and a kernel finds gate and up side by side.
#ifndef WARPSMITH_CORE_MODEL_PARAMETER_LAYOUT_H_
#define WARPSMITH_CORE_MODEL_PARAMETER_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"

namespace warpsmith {

inline constexpr int64_t kGateUpBlock = 16;        // rows
inline constexpr int64_t kEntryAlignment = 64;     // elements
inline constexpr int64_t kBufferAlignment = 1024;  // elements: any usual number of ranks divides it

// One tensor as the kernels see it: `size` elements from `offset` of its buffer.
struct ParameterEntry {
  std::string name;    // within its buffer: "input_norm", "qkv", "query_norm", ...
  int64_t offset = 0;  // elements from the start of the buffer
  std::vector<int64_t> shape;
  bool decays = false;  // matrices take weight decay, norms and biases do not
  int64_t size() const;
};

struct ParameterBuffer {
  std::string name;  // "embedding", "layers.0", ..., "final"
  int64_t size = 0;  // elements, padding included (padding is zero and stays zero)
  std::vector<ParameterEntry> entries;
};

// `length` elements that lie together in both forms.
struct CopyRun {
  int64_t hf_offset = 0;      // elements from the start of the Hugging Face tensor
  int64_t buffer_offset = 0;  // elements from the start of the buffer
  int64_t length = 0;
};

// A tensor of the Hugging Face checkpoint and the runs it is made of.
struct HfTensorLayout {
  std::string name;  // e.g. "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  int buffer = 0;             // index into buffers()
  std::vector<CopyRun> runs;  // in order of hf_offset, covering the tensor, or what a shard has of it
};

// Immutable; a pure function of the configuration.
class ParameterLayout {
 public:
  // `config` must be valid.
  explicit ParameterLayout(const ModelConfig& config);
  // The buffers of `config` alone, filled from other tensors: see ShardLayout (core/model/tensor_shard.h).
  ParameterLayout(const ModelConfig& config, std::vector<HfTensorLayout> hf_tensors);

  const ModelConfig& config() const { return config_; }
  // "embedding", "layers.0" ... "layers.<n-1>", "final".
  const std::vector<ParameterBuffer>& buffers() const { return buffers_; }
  int num_buffers() const { return static_cast<int>(buffers_.size()); }
  int embedding_buffer() const { return 0; }
  int layer_buffer(int64_t layer) const { return static_cast<int>(layer) + 1; }
  int final_buffer() const { return num_buffers() - 1; }

  // The entry `name` of buffer `buffer`; it must exist.
  const ParameterEntry& entry(int buffer, const std::string& name) const;
  // Null if the model has no such entry: "qkv_bias" without ModelConfig::qkv_bias, "query_norm" and "key_norm"
  // without qk_norm, "head" with tied embeddings.
  const ParameterEntry* FindEntry(int buffer, const std::string& name) const;

  // In the order of a Hugging Face checkpoint.
  const std::vector<HfTensorLayout>& hf_tensors() const { return hf_tensors_; }

  // One line an entry: buffer, name, offset, shape. Its SHA-256 tells two processes that they mean the same
  // bytes.
  std::string Manifest() const;
  std::string Sha256() const;

 private:
  ModelConfig config_;
  std::vector<ParameterBuffer> buffers_;
  std::vector<HfTensorLayout> hf_tensors_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_PARAMETER_LAYOUT_H_
