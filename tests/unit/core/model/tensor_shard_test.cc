#include "core/model/tensor_shard.h"

#include <string>

#include "core/model/parameters.h"
#include "core/model/staging_plan.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

struct ShardedConfig {
  std::string name;
  ModelConfig config;
  int count = 1;
};

// Groups of 3 and 4 query heads, biases, tied and untied, in 2, 3 and 4 shards.
std::vector<ShardedConfig> ShardedConfigs() {
  ModelConfig qwen3 = OddConfig();
  qwen3.intermediate_size = 96;
  ModelConfig qwen2 = WithHeads(qwen3, 12, 3, 8);
  qwen2.qkv_bias = true;
  qwen2.qk_norm = false;
  ModelConfig untied = WithHeads(qwen3, 16, 4, 12);
  untied.intermediate_size = 128;
  untied.tie_word_embeddings = false;
  return {{"Qwen3, 2", qwen3, 2}, {"Qwen2, 3", qwen2, 3}, {"untied, 2", untied, 2}, {"untied, 4", untied, 4}};
}

int64_t TensorSize(const HfTensorLayout& tensor) {
  int64_t size = 1;
  for (const int64_t extent : tensor.shape) size *= extent;
  return size;
}

// Whether every shard has its own part of a tensor.
bool IsCut(const std::string& tensor) { return tensor.find("_proj") != std::string::npos; }

}  // namespace

TEST_CASE("the shards' runs cover every tensor once, and what is not cut once a shard") {
  for (const auto& [name, config, count] : ShardedConfigs()) {
    INFO(name);
    const ParameterLayout whole(config);
    for (int tensor = 0; tensor < std::ssize(whole.hf_tensors()); ++tensor) {
      const HfTensorLayout& placed = whole.hf_tensors()[tensor];
      INFO(placed.name);
      std::vector<int> covered(TensorSize(placed));
      for (int index = 0; index < count; ++index) {
        const HfTensorLayout part = ShardLayout(config, {index, count}).hf_tensors()[tensor];
        CHECK(part.name == placed.name);
        CHECK(part.shape == placed.shape);
        int64_t next = 0;
        for (const CopyRun& run : part.runs) {
          CHECK(run.hf_offset >= next);
          next = run.hf_offset + run.length;
          for (int64_t i = 0; i < run.length; ++i) ++covered.at(run.hf_offset + i);
        }
      }
      CHECK(covered == std::vector<int>(covered.size(), IsCut(placed.name) ? 1 : count));
    }
  }
}

TEST_CASE("the runs of a shard cover every entry of its buffers once and no padding") {
  for (const auto& [name, config, count] : ShardedConfigs()) {
    INFO(name);
    for (int index = 0; index < count; ++index) {
      const ParameterLayout layout = ShardLayout(config, {index, count});
      CHECK(layout.config() == ShardConfig(config, count));
      for (int b = 0; b < layout.num_buffers(); ++b) {
        std::vector<int> covered(layout.buffers()[b].size), expected(layout.buffers()[b].size);
        for (const HfTensorLayout& tensor : layout.hf_tensors()) {
          for (const CopyRun& run : tensor.runs) {
            for (int64_t i = 0; tensor.buffer == b && i < run.length; ++i)
              ++covered.at(run.buffer_offset + i);
          }
        }
        for (const ParameterEntry& entry : layout.buffers()[b].entries) {
          for (int64_t i = 0; i < entry.size(); ++i) expected.at(entry.offset + i) = 1;
        }
        CHECK(covered == expected);
      }
    }
  }
}

// A whole buffer's element goes to the same place by its tensor and by its buffer.
TEST_CASE("a shard of the buffers is the shard of the tensors that they are made of") {
  for (const auto& [name, config, count] : ShardedConfigs()) {
    INFO(name);
    const ParameterLayout whole(config);
    for (int index = 0; index < count; ++index) {
      const ParameterLayout layout = ShardLayout(config, {index, count});
      const std::vector<HfTensorLayout> buffers = ShardOfBuffers(whole, layout, {index, count});
      std::vector<std::vector<int64_t>> by_buffer, by_tensor;
      for (const ParameterBuffer& buffer : layout.buffers()) {
        by_buffer.emplace_back(buffer.size, -1);
        by_tensor.emplace_back(buffer.size, -1);
      }
      for (const HfTensorLayout& buffer : buffers) {
        for (const CopyRun& run : buffer.runs) {
          for (int64_t i = 0; i < run.length; ++i) {
            by_buffer[buffer.buffer].at(run.buffer_offset + i) = run.hf_offset + i;
          }
        }
      }
      for (int t = 0; t < std::ssize(whole.hf_tensors()); ++t) {
        const HfTensorLayout &full = whole.hf_tensors()[t], &part = layout.hf_tensors()[t];
        std::vector<int64_t> place(TensorSize(full));
        for (const CopyRun& run : full.runs) {
          for (int64_t i = 0; i < run.length; ++i) place[run.hf_offset + i] = run.buffer_offset + i;
        }
        for (const CopyRun& run : part.runs) {
          for (int64_t i = 0; i < run.length; ++i) {
            by_tensor[part.buffer].at(run.buffer_offset + i) = place[run.hf_offset + i];
          }
        }
      }
      CHECK(by_buffer == by_tensor);
    }
  }
}

TEST_CASE("a shard has its KV groups of qkv, its columns of output and down, and its blocks of gate_up") {
  ModelConfig config = OddConfig();  // 2 groups of 3 + 1 + 1 heads of 20 rows, 40 columns
  config.intermediate_size = 96;
  const ParameterLayout whole(config), second = ShardLayout(config, {1, 2});
  const std::vector<HfTensorLayout> buffers = ShardOfBuffers(whole, second, {1, 2});
  const auto source = [&](const char* entry, int64_t element) {
    const int64_t at = second.entry(1, entry).offset + element;
    for (const CopyRun& run : buffers[1].runs) {
      if (at >= run.buffer_offset && at < run.buffer_offset + run.length) {
        return run.hf_offset + at - run.buffer_offset - whole.entry(1, entry).offset;
      }
    }
    return int64_t{-1};
  };
  CHECK(source("qkv", 0) == 5 * 20 * 40);
  CHECK(source("gate_up", 7) == 96 * 40 + 7);
  CHECK(source("output", 0) == 60);
  CHECK(source("output", 60) == 120 + 60);  // of the second row
  CHECK(source("down", 48 * 2 + 5) == 96 * 2 + 48 + 5);
  CHECK(source("query_norm", 3) == 3);
}

TEST_CASE("one shard is the whole model") {
  for (const auto& [name, config] : FamilyConfigs()) {
    INFO(name);
    CHECK(ShardLayout(config, {}).Manifest() == ParameterLayout(config).Manifest());
    CHECK(ShardConfig(config, 1) == config);
  }
}

TEST_CASE("shards that do not divide heads or blocks are refused with the numbers that do") {
  ModelConfig config = WithHeads(OddConfig(), 16, 8, 16);
  config.intermediate_size = 16 * 12;
  CHECK(CheckTensorShard(config, {3, 4}).ok());
  const absl::Status three = CheckTensorShard(config, {0, 3});
  CHECK(absl::IsInvalidArgument(three));
  CHECK(
      std::string(three.message()) ==
      "tensor parallelism: the model has 8 key-value heads and 12 blocks of 16 intermediate values, which 3 "
      "GPUs do not divide: give 1, 2, 4 GPUs");
  CHECK(absl::IsInvalidArgument(CheckTensorShard(config, {0, 8})));  // 12 blocks
  CHECK(absl::IsInvalidArgument(CheckTensorShard(config, {0, 0})));
  CHECK(absl::IsInvalidArgument(CheckTensorShard(config, {2, 2})));
  CHECK(absl::IsInvalidArgument(CheckTensorShard(config, {-1, 2})));
}

}  // namespace warpsmith
