#include "core/model/copy_blocks.h"

#include "core/model/tensor_shard.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

ModelConfig Shardable() {
  return {.vocab_size = 96,
          .hidden_size = 64,
          .intermediate_size = 256,
          .num_hidden_layers = 2,
          .num_attention_heads = 8,
          .num_key_value_heads = 4,
          .head_dim = 16,
          .max_position_embeddings = 64};
}

// The copies element by element.
std::vector<std::pair<int64_t, int64_t>> ElementsOf(const std::vector<CopyBlock>& blocks) {
  std::vector<std::pair<int64_t, int64_t>> elements;
  for (const CopyBlock& block : blocks) {
    for (int64_t row = 0; row < block.rows; ++row) {
      for (int64_t i = 0; i < block.length; ++i) {
        elements.emplace_back(block.from + row * block.from_stride + i, block.to + row * block.to_stride + i);
      }
    }
  }
  return elements;
}

std::vector<std::pair<int64_t, int64_t>> ElementsOf(const std::vector<CopyRun>& runs) {
  std::vector<std::pair<int64_t, int64_t>> elements;
  for (const CopyRun& run : runs) {
    for (int64_t i = 0; i < run.length; ++i) elements.emplace_back(run.hf_offset + i, run.buffer_offset + i);
  }
  return elements;
}

}  // namespace

TEST_CASE("runs of one length at equal distances are one block, and others are their own") {
  const std::vector<CopyBlock> blocks =
      BlocksOf({{0, 0, 4}, {10, 4, 4}, {20, 8, 4}, {31, 12, 4}, {41, 16, 4}, {50, 20, 3}, {40, 30, 3}});
  REQUIRE(blocks.size() == 4);
  CHECK((blocks[0].rows == 3 && blocks[0].from_stride == 10 && blocks[0].to_stride == 4));
  CHECK((blocks[1].rows == 2 && blocks[1].from == 31));
  CHECK((blocks[2].rows == 1 && blocks[2].length == 3));
  CHECK((blocks[3].rows == 1 && blocks[3].from == 40));
  CHECK(BlocksOf({}).empty());
}

TEST_CASE("rows that are longer or lie further apart than a block may have are blocks of their own") {
  const std::vector<CopyRun> runs = {{0, 0, 25}, {40, 25, 3}, {49, 28, 3}, {60, 31, 3}, {80, 34, 3}};
  const std::vector<CopyBlock> blocks = BlocksOf(runs, 10);
  CHECK(ElementsOf(blocks) == ElementsOf(runs));
  CHECK(blocks.size() == 6);  // three of the long run, one of two rows, two that are apart
  for (const CopyBlock& block : blocks) {
    CHECK(block.length <= 10);
    CHECK((block.from_stride <= 10 && block.to_stride <= 10));
  }
}

TEST_CASE("the embedding of a model of 72 billion parameters is copied in blocks that CUDA takes") {
  const int64_t elements = int64_t{152064} * 8192;  // 2.5 GB
  const std::vector<CopyBlock> blocks = BlocksOf({{0, 0, elements}});
  int64_t copied = 0;
  for (const CopyBlock& block : blocks) {
    CHECK(block.from == copied);
    CHECK(block.from_stride * 2 < (int64_t{1} << 31));
    copied += block.length;
  }
  CHECK(copied == elements);
}

TEST_CASE("the blocks of a shard copy what its runs say, a matrix that is cut by columns at once") {
  const ParameterLayout whole(Shardable());
  for (const int count : {2, 4}) {
    for (int index = 0; index < count; ++index) {
      const TensorShard shard{index, count};
      const ParameterLayout part = ShardLayout(Shardable(), shard);
      for (const HfTensorLayout& buffer : ShardOfBuffers(whole, part, shard)) {
        const std::vector<CopyBlock> blocks = BlocksOf(buffer.runs);
        CHECK(ElementsOf(blocks) == ElementsOf(buffer.runs));
        CHECK(std::ssize(blocks) <= std::ssize(whole.buffers()[buffer.buffer].entries));
      }
    }
  }
}

}  // namespace warpsmith
