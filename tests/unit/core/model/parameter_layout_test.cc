#include "core/model/parameter_layout.h"

#include <string>
#include <utility>
#include <vector>

#include "core/kernels/attention_inputs.h"
#include "core/kernels/swiglu.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

const HfTensorLayout& Find(const ParameterLayout& layout, const std::string& name) {
  for (const HfTensorLayout& tensor : layout.hf_tensors()) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return layout.hf_tensors()[0];
}

TEST_CASE("the runs of all tensors cover every entry once and no padding") {
  for (const auto& [name, config] : FamilyConfigs()) {
    INFO(name);
    const ParameterLayout layout(config);
    for (int b = 0; b < layout.num_buffers(); ++b) {
      const ParameterBuffer& buffer = layout.buffers()[b];
      std::vector<int> covered(buffer.size);
      for (const HfTensorLayout& tensor : layout.hf_tensors()) {
        int64_t next = 0;
        for (const CopyRun& run : tensor.runs) {
          CHECK(run.hf_offset == next);
          next += run.length;
          for (int64_t i = 0; tensor.buffer == b && i < run.length; ++i) ++covered.at(run.buffer_offset + i);
        }
      }
      std::vector<int> expected(buffer.size);
      for (const ParameterEntry& entry : buffer.entries) {
        for (int64_t i = 0; i < entry.size(); ++i) expected.at(entry.offset + i) = 1;
      }
      CHECK(covered == expected);
    }
  }
}

TEST_CASE("query, key and value heads lie together by key-value group") {
  const ModelConfig config = OddConfig();  // 3 query heads a group, 2 groups, heads of 20 rows, 40 columns
  const ParameterLayout layout(config);
  const int64_t qkv = layout.entry(layout.layer_buffer(1), "qkv").offset;
  const std::string prefix = "model.layers.1.self_attn.";
  CHECK(Find(layout, prefix + "q_proj.weight").runs[1].buffer_offset == qkv + 5 * 20 * 40);
  CHECK(Find(layout, prefix + "q_proj.weight").runs[1].hf_offset == 3 * 20 * 40);
  CHECK(Find(layout, prefix + "k_proj.weight").runs[0].buffer_offset == qkv + 3 * 20 * 40);
  CHECK(Find(layout, prefix + "v_proj.weight").runs[1].buffer_offset == qkv + 9 * 20 * 40);
}

TEST_CASE("biases lie by key-value group as the rows that they belong to") {
  ModelConfig config = OddConfig();  // groups of 3 + 1 + 1 heads of 20 rows
  config.qkv_bias = true;
  config.qk_norm = false;
  const ParameterLayout layout(config);
  const ParameterEntry& bias = layout.entry(layout.layer_buffer(1), "qkv_bias");
  CHECK(bias.shape == std::vector<int64_t>{200});
  const std::string prefix = "model.layers.1.self_attn.";
  CHECK(Find(layout, prefix + "q_proj.bias").shape == std::vector<int64_t>{120});
  CHECK(Find(layout, prefix + "q_proj.bias").runs[1].buffer_offset == bias.offset + 5 * 20);
  CHECK(Find(layout, prefix + "k_proj.bias").runs[0].buffer_offset == bias.offset + 3 * 20);
  CHECK(Find(layout, prefix + "v_proj.bias").runs[1].buffer_offset == bias.offset + 9 * 20);
}

TEST_CASE("an entry that the architecture lacks is not there") {
  const ParameterLayout qwen3(FamilyConfigs()[0].config), qwen2(FamilyConfigs()[2].config);
  CHECK(qwen3.FindEntry(1, "qkv_bias") == nullptr);
  CHECK(qwen3.FindEntry(1, "key_norm") == &qwen3.entry(1, "key_norm"));
  CHECK(qwen2.FindEntry(1, "query_norm") == nullptr);
  CHECK(qwen2.FindEntry(1, "key_norm") == nullptr);
  CHECK(qwen2.FindEntry(1, "qkv_bias") != nullptr);
}

TEST_CASE("gate and up rows alternate in blocks of 16") {
  const ParameterLayout layout(OddConfig());
  const int64_t gate_up = layout.entry(layout.layer_buffer(0), "gate_up").offset;
  CHECK(Find(layout, "model.layers.0.mlp.gate_proj.weight").runs[2].buffer_offset == gate_up + 64 * 40);
  CHECK(Find(layout, "model.layers.0.mlp.up_proj.weight").runs[2].buffer_offset == gate_up + 80 * 40);
}

// Calls body(row of the tensor, row of the entry at `offset`) for every row of a projection.
template <typename Body>
void ForRows(const ParameterLayout& layout, const std::string& name, int64_t offset, Body body) {
  const HfTensorLayout& tensor = Find(layout, name);
  for (const CopyRun& run : tensor.runs) {
    for (int64_t at = 0; at < run.length; at += tensor.shape[1]) {
      body((run.hf_offset + at) / tensor.shape[1], (run.buffer_offset - offset + at) / tensor.shape[1]);
    }
  }
}

TEST_CASE("where the kernels look for heads, gate and up is where the layout has them") {
  for (const auto& [family, config] : FamilyConfigs()) {
    INFO(family);
    const ParameterLayout layout(config);
    const int64_t qkv = layout.entry(1, "qkv").offset, gate_up = layout.entry(1, "gate_up").offset;
    const int64_t dim = config.head_dim, group_size = config.group_size();
    int64_t misplaced = 0;
    for (const auto& [name, kind] :
         {std::pair{"q_proj", HeadKind::kQuery}, {"k_proj", HeadKind::kKey}, {"v_proj", HeadKind::kValue}}) {
      ForRows(layout, std::string("model.layers.0.self_attn.") + name + ".weight", qkv,
              [&, kind = kind](int64_t row, int64_t at) {
                const HeadPlace place = PlaceOfHead(at / dim, group_size);
                misplaced += place.kind != kind || place.index != row / dim || at % dim != row % dim;
              });
    }
    ForRows(layout, "model.layers.0.mlp.gate_proj.weight", gate_up,
            [&](int64_t row, int64_t at) { misplaced += GateColumn(row) != at; });
    ForRows(layout, "model.layers.0.mlp.up_proj.weight", gate_up,
            [&](int64_t row, int64_t at) { misplaced += GateColumn(row) + kSwiGluBlock != at; });
    CHECK(misplaced == 0);
  }
}

TEST_CASE("entries begin on boundaries, buffers divide among ranks, matrices alone decay") {
  const ParameterLayout layout(OddConfig());
  for (const ParameterBuffer& buffer : layout.buffers()) {
    CHECK(buffer.size % kBufferAlignment == 0);
    for (const ParameterEntry& entry : buffer.entries) {
      CHECK(entry.offset % kEntryAlignment == 0);
      CHECK(entry.decays == (entry.shape.size() == 2));
    }
  }
}

TEST_CASE("the digest tells layouts apart and repeats") {
  ModelConfig other = OddConfig();
  other.num_key_value_heads = 3;
  CHECK(ParameterLayout(OddConfig()).Sha256() == ParameterLayout(OddConfig()).Sha256());
  CHECK(ParameterLayout(OddConfig()).Sha256() != ParameterLayout(other).Sha256());
  other = OddConfig();
  other.tie_word_embeddings = false;
  CHECK(ParameterLayout(OddConfig()).Sha256() != ParameterLayout(other).Sha256());
  other = OddConfig();
  other.qk_norm = false;
  CHECK(ParameterLayout(OddConfig()).Sha256() != ParameterLayout(other).Sha256());
  const std::string llama = ParameterLayout(other).Sha256();
  other.qkv_bias = true;
  CHECK(ParameterLayout(other).Sha256() != llama);
}

}  // namespace
}  // namespace warpsmith
