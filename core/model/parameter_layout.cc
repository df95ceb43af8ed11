#include "core/model/parameter_layout.h"

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

// A projection [rows, columns] cut into blocks of `block_rows`; block i begins at `offset` + i * `stride`
// elements.
HfTensorLayout Blocks(std::string name, int buffer, int64_t rows, int64_t columns, int64_t block_rows,
                      int64_t offset, int64_t stride) {
  HfTensorLayout tensor{std::move(name), {rows, columns}, buffer, {}};
  const int64_t length = block_rows * columns;
  for (int64_t i = 0; i < rows / block_rows; ++i) {
    tensor.runs.push_back({i * length, offset + i * stride, length});
  }
  return tensor;
}

void AddLayer(const ModelConfig& c, int64_t layer, std::vector<ParameterBuffer>& buffers,
              std::vector<HfTensorLayout>& tensors) {
  const int index = static_cast<int>(buffers.size());
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int64_t d = c.hidden_size, h = c.head_dim, group = c.group_size();
  BufferBuilder builder(absl::StrCat("layers.", layer));
  const int64_t input_norm = builder.Add("input_norm", {d});
  const int64_t qkv = builder.Add("qkv", {c.qkv_size(), d});
  const int64_t query_norm = builder.Add("query_norm", {h});
  const int64_t key_norm = builder.Add("key_norm", {h});
  const int64_t output = builder.Add("output", {d, c.query_size()});
  const int64_t post_norm = builder.Add("post_norm", {d});
  const int64_t gate_up = builder.Add("gate_up", {2 * c.intermediate_size, d});
  const int64_t down = builder.Add("down", {d, c.intermediate_size});
  buffers.push_back(std::move(builder).Build());

  const int64_t group_stride = (group + 2) * h * d, gate_stride = 2 * kGateUpBlock * d;
  const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
  tensors.push_back(Whole(prefix + "input_layernorm.weight", index, input_norm, {d}));
  tensors.push_back(
      Blocks(attention + "q_proj.weight", index, c.query_size(), d, group * h, qkv, group_stride));
  tensors.push_back(Blocks(attention + "k_proj.weight", index, c.key_value_size(), d, h, qkv + group * h * d,
                           group_stride));
  tensors.push_back(Blocks(attention + "v_proj.weight", index, c.key_value_size(), d, h,
                           qkv + (group + 1) * h * d, group_stride));
  tensors.push_back(Whole(attention + "q_norm.weight", index, query_norm, {h}));
  tensors.push_back(Whole(attention + "k_norm.weight", index, key_norm, {h}));
  tensors.push_back(Whole(attention + "o_proj.weight", index, output, {d, c.query_size()}));
  tensors.push_back(Whole(prefix + "post_attention_layernorm.weight", index, post_norm, {d}));
  tensors.push_back(
      Blocks(mlp + "gate_proj.weight", index, c.intermediate_size, d, kGateUpBlock, gate_up, gate_stride));
  tensors.push_back(Blocks(mlp + "up_proj.weight", index, c.intermediate_size, d, kGateUpBlock,
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

const ParameterEntry& ParameterLayout::entry(int buffer, const std::string& name) const {
  const auto& entries = buffers_.at(buffer).entries;
  size_t i = 0;
  while (i < entries.size() && entries[i].name != name) ++i;
  WS_CHECK(i < entries.size()) << "no entry '" << name << "' in buffer " << buffers_[buffer].name;
  return entries[i];
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
