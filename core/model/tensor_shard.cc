#include "core/model/tensor_shard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace warpsmith {
namespace {

// How an entry is cut.
enum class Cut { kNot, kRows, kColumns };

Cut CutOf(const std::string& entry) {
  if (entry == "qkv" || entry == "qkv_bias" || entry == "gate_up") return Cut::kRows;
  return entry == "output" || entry == "down" ? Cut::kColumns : Cut::kNot;
}

// The runs of one entry, in order of the whole buffer.
void AddRuns(const ParameterEntry& whole, const ParameterEntry& part, TensorShard shard,
             std::vector<CopyRun>& runs) {
  switch (CutOf(whole.name)) {
    case Cut::kNot:
      runs.push_back({whole.offset, part.offset, part.size()});
      return;
    case Cut::kRows:
      runs.push_back({whole.offset + shard.index * part.size(), part.offset, part.size()});
      return;
    case Cut::kColumns: {
      const int64_t columns = part.shape[1];
      for (int64_t row = 0; row < part.shape[0]; ++row) {
        runs.push_back({whole.offset + row * whole.shape[1] + shard.index * columns,
                        part.offset + row * columns, columns});
      }
    }
  }
}

std::vector<CopyRun> RunsOfBuffer(const ParameterBuffer& whole, const ParameterBuffer& part,
                                  TensorShard shard) {
  WS_CHECK(whole.entries.size() == part.entries.size()) << whole.name;
  std::vector<CopyRun> runs;
  for (size_t i = 0; i < whole.entries.size(); ++i) AddRuns(whole.entries[i], part.entries[i], shard, runs);
  return runs;
}

// What of `tensor`, in the order of its elements, goes through `of_buffer` (ascending by hf_offset).
std::vector<CopyRun> Composed(const HfTensorLayout& tensor, const std::vector<CopyRun>& of_buffer) {
  std::vector<CopyRun> runs;
  for (const CopyRun& run : tensor.runs) {
    const int64_t begin = run.buffer_offset, end = begin + run.length;
    auto part = std::partition_point(of_buffer.begin(), of_buffer.end(), [&](const CopyRun& each) {
      return each.hf_offset + each.length <= begin;
    });
    for (; part != of_buffer.end() && part->hf_offset < end; ++part) {
      const int64_t first = std::max(begin, part->hf_offset);
      const int64_t length = std::min(end, part->hf_offset + part->length) - first;
      runs.push_back({run.hf_offset + first - begin, part->buffer_offset + first - part->hf_offset, length});
    }
  }
  return runs;
}

// Divisors of both.
std::vector<int64_t> CountsAllowed(const ModelConfig& config) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count <= config.num_key_value_heads; ++count) {
    if (config.num_key_value_heads % count == 0 && config.intermediate_size / kGateUpBlock % count == 0) {
      counts.push_back(count);
    }
  }
  return counts;
}

}  // namespace

absl::Status CheckTensorShard(const ModelConfig& config, TensorShard shard) {
  const std::vector<int64_t> allowed = CountsAllowed(config);
  if (std::find(allowed.begin(), allowed.end(), shard.count) == allowed.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor parallelism: the model has ", config.num_key_value_heads,
                     " key-value heads and ", config.intermediate_size / kGateUpBlock, " blocks of ",
                     kGateUpBlock, " intermediate values, which ", shard.count, " GPUs do not divide: give ",
                     absl::StrJoin(allowed, ", "), " GPU", allowed.size() > 1 ? "s" : ""));
  }
  if (shard.index >= 0 && shard.index < shard.count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor parallelism: there is no shard ", shard.index, " of ", shard.count));
}

ModelConfig ShardConfig(const ModelConfig& config, int count) {
  ModelConfig part = config;
  part.num_attention_heads /= count;
  part.num_key_value_heads /= count;
  part.intermediate_size /= count;
  return part;
}

ParameterLayout ShardLayout(const ModelConfig& config, TensorShard shard) {
  const ParameterLayout whole(config);
  if (shard.is_whole()) return whole;
  const ParameterLayout part(ShardConfig(config, shard.count));
  std::vector<std::vector<CopyRun>> of_buffers;
  for (int i = 0; i < whole.num_buffers(); ++i) {
    of_buffers.push_back(RunsOfBuffer(whole.buffers()[i], part.buffers()[i], shard));
  }
  std::vector<HfTensorLayout> tensors;
  for (const HfTensorLayout& tensor : whole.hf_tensors()) {
    tensors.push_back(
        {tensor.name, tensor.shape, tensor.buffer, Composed(tensor, of_buffers[tensor.buffer])});
  }
  return ParameterLayout(part.config(), std::move(tensors));
}

std::vector<HfTensorLayout> ShardOfBuffers(const ParameterLayout& whole, const ParameterLayout& layout,
                                           TensorShard shard) {
  std::vector<HfTensorLayout> tensors;
  for (int i = 0; i < whole.num_buffers(); ++i) {
    const ParameterBuffer& buffer = whole.buffers()[i];
    tensors.push_back({buffer.name, {buffer.size}, i, RunsOfBuffer(buffer, layout.buffers()[i], shard)});
  }
  return tensors;
}

}  // namespace warpsmith
