#include "core/model/parameter_layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/sha256.h"

namespace warpsmith {
namespace {

int64_t RoundUpTo(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Entries one after another, each on a boundary of kEntryAlignment.
class BufferBuilder {
 public:
  explicit BufferBuilder(std::string name) { buffer_.name = std::move(name); }

  int64_t Add(std::string name, std::vector<int64_t> shape) {
    ParameterEntry entry;
    entry.name = std::move(name);
    entry.offset = RoundUpTo(buffer_.size, kEntryAlignment);
    entry.decays = shape.size() > 1;
    entry.shape = std::move(shape);
    buffer_.size = entry.offset + entry.size();
    buffer_.entries.push_back(std::move(entry));
    return buffer_.entries.back().offset;
  }

  ParameterBuffer Build() && {
    buffer_.size = RoundUpTo(buffer_.size, kBufferAlignment);
    return std::move(buffer_);
  }

 private:
  ParameterBuffer buffer_;
};

HfTensorLayout Whole(std::string name, int buffer, int64_t offset, std::vector<int64_t> shape) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  return {std::move(name), std::move(shape), buffer, {{0, offset, size}}};
}

// A projection [rows, columns], or its bias [rows], cut into blocks of `block_rows`; block i begins at `offset` +
// i * `stride` elements.
HfTensorLayout Blocks(std::string name, int buffer, std::vector<int64_t> shape, int64_t block_rows,
                      int64_t offset, int64_t stride) {
  const int64_t rows = shape[0], length = block_rows * (shape.size() > 1 ? shape[1] : 1);
  HfTensorLayout tensor{std::move(name), std::move(shape), buffer, {}};
  for (int64_t i = 0; i < rows / block_rows; ++i) {
    tensor.runs.push_back({i * length, offset + i * stride, length});
  }
  return tensor;
}

// The rows of one projection within the rows of a KV group.
struct GroupRows {
  const char* projection;
  int64_t first;
  int64_t count;
};

std::vector<GroupRows> GroupRowsOf(const ModelConfig& c) {
  const int64_t query = c.group_size() * c.head_dim, h = c.head_dim;
  return {{"q_proj", 0, query}, {"k_proj", query, h}, {"v_proj", query + h, h}};
}

void AddLayer(const ModelConfig& c, int64_t layer, std::vector<ParameterBuffer>& buffers,
              std::vector<HfTensorLayout>& tensors) {
  const int index = static_cast<int>(buffers.size());
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int64_t d = c.hidden_size, h = c.head_dim, p = c.qkv_size(), groups = c.num_key_value_heads;
  BufferBuilder builder(absl::StrCat("layers.", layer));
  const int64_t input_norm = builder.Add("input_norm", {d});
  const int64_t qkv = builder.Add("qkv", {p, d});
  const int64_t qkv_bias = c.qkv_bias ? builder.Add("qkv_bias", {p}) : 0;
  const int64_t query_norm = c.qk_norm ? builder.Add("query_norm", {h}) : 0;
  const int64_t key_norm = c.qk_norm ? builder.Add("key_norm", {h}) : 0;
  const int64_t output = builder.Add("output", {d, c.query_size()});
  const int64_t post_norm = builder.Add("post_norm", {d});
  const int64_t gate_up = builder.Add("gate_up", {2 * c.intermediate_size, d});
  const int64_t down = builder.Add("down", {d, c.intermediate_size});
  buffers.push_back(std::move(builder).Build());

  const int64_t gate_stride = 2 * kGateUpBlock * d;
  const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
  tensors.push_back(Whole(prefix + "input_layernorm.weight", index, input_norm, {d}));
  for (const GroupRows& rows : GroupRowsOf(c)) {
    tensors.push_back(Blocks(attention + rows.projection + ".weight", index, {groups * rows.count, d},
                             rows.count, qkv + rows.first * d, p / groups * d));
    if (!c.qkv_bias) continue;
    tensors.push_back(Blocks(attention + rows.projection + ".bias", index, {groups * rows.count}, rows.count,
                             qkv_bias + rows.first, p / groups));
  }
  if (c.qk_norm) {
    tensors.push_back(Whole(attention + "q_norm.weight", index, query_norm, {h}));
    tensors.push_back(Whole(attention + "k_norm.weight", index, key_norm, {h}));
  }
  tensors.push_back(Whole(attention + "o_proj.weight", index, output, {d, c.query_size()}));
  tensors.push_back(Whole(prefix + "post_attention_layernorm.weight", index, post_norm, {d}));
  tensors.push_back(
      Blocks(mlp + "gate_proj.weight", index, {c.intermediate_size, d}, kGateUpBlock, gate_up, gate_stride));
  tensors.push_back(Blocks(mlp + "up_proj.weight", index, {c.intermediate_size, d}, kGateUpBlock,
                           gate_up + kGateUpBlock * d, gate_stride));
  tensors.push_back(Whole(mlp + "down_proj.weight", index, down, {d, c.intermediate_size}));
}

}  // namespace

int64_t ParameterEntry::size() const {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  return size;
}

ParameterLayout::ParameterLayout(const ModelConfig& config) : config_(config) {
  WS_CHECK(ValidateModelConfig(config).ok()) << ValidateModelConfig(config).message();
  const int64_t v = config.vocab_size, d = config.hidden_size;
  BufferBuilder embedding("embedding");
  hf_tensors_.push_back(Whole("model.embed_tokens.weight", 0, embedding.Add("embedding", {v, d}), {v, d}));
  buffers_.push_back(std::move(embedding).Build());
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    AddLayer(config, layer, buffers_, hf_tensors_);

  const int last = static_cast<int>(buffers_.size());
  BufferBuilder final("final");
  hf_tensors_.push_back(Whole("model.norm.weight", last, final.Add("norm", {d}), {d}));
  if (!config.tie_word_embeddings) {
    hf_tensors_.push_back(Whole("lm_head.weight", last, final.Add("head", {v, d}), {v, d}));
  }
  buffers_.push_back(std::move(final).Build());
}

ParameterLayout::ParameterLayout(const ModelConfig& config, std::vector<HfTensorLayout> hf_tensors)
    : ParameterLayout(config) {
  hf_tensors_ = std::move(hf_tensors);
}

const ParameterEntry* ParameterLayout::FindEntry(int buffer, const std::string& name) const {
  for (const ParameterEntry& entry : buffers_.at(buffer).entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const ParameterEntry& ParameterLayout::entry(int buffer, const std::string& name) const {
  const ParameterEntry* const found = FindEntry(buffer, name);
  WS_CHECK(found != nullptr) << "no entry '" << name << "' in buffer " << buffers_[buffer].name;
  return *found;
}

std::string ParameterLayout::Manifest() const {
  std::string text;
  for (const ParameterBuffer& buffer : buffers_) {
    absl::StrAppend(&text, buffer.name, " ", buffer.size, "\n");
    for (const ParameterEntry& entry : buffer.entries) {
      absl::StrAppend(&text, buffer.name, ".", entry.name, " ", entry.offset, " [",
                      absl::StrJoin(entry.shape, ","), "]\n");
    }
  }
  for (const HfTensorLayout& tensor : hf_tensors_) {
    absl::StrAppend(&text, tensor.name, " ", tensor.buffer, " ", tensor.runs.size(), " ",
                    tensor.runs[0].buffer_offset, " ", tensor.runs[0].length, "\n");
  }
  return text;
}

std::string ParameterLayout::Sha256() const { return Sha256Hex(Manifest()); }

}  // namespace warpsmith
