// Shards of a decoder for tensor parallelism: which part of each matrix a GPU of a group holds.
//
// Every shard has its KV groups' rows of qkv (one contiguous range of the layout), its blocks of gate_up (likewise),
// the columns of `output` that meet its query heads and the columns of `down` that meet its intermediate values. So a
// layer needs the other shards twice, for the sums of output and down; everything else of it stays within a GPU.
// Embedding, norms and head are whole on every shard. Shoeybi et al., arXiv 1909.08053, section 3.
#ifndef WARPSMITH_CORE_MODEL_TENSOR_SHARD_H_
#define WARPSMITH_CORE_MODEL_TENSOR_SHARD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/model/model_config.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// Shard `index` of `count`; one shard is the whole model.
struct TensorShard {
  int index = 0;
  int count = 1;

  bool is_whole() const { return count == 1; }
};

// INVALID_ARGUMENT, with the numbers that are allowed, where `count` shards do not divide the key-value heads and the
// blocks of intermediate_size, or the index is none of 0 to count - 1. `config` must be valid.
absl::Status CheckTensorShard(const ModelConfig& config, TensorShard shard);

// What a shard computes: a part of the heads and of the intermediate values, everything else as `config`.
ModelConfig ShardConfig(const ModelConfig& config, int count);

// The buffers of a shard's configuration. hf_tensors() keeps the names and shapes of the whole checkpoint, with the
// runs of the shard alone.
ParameterLayout ShardLayout(const ModelConfig& config, TensorShard shard);

// Each buffer of `whole` as if it were a tensor of a checkpoint that `layout`, a shard's, is filled from: hf_offset of
// its runs counts from the start of the whole buffer.
std::vector<HfTensorLayout> ShardOfBuffers(const ParameterLayout& whole, const ParameterLayout& layout,
                                           TensorShard shard);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TENSOR_SHARD_H_
