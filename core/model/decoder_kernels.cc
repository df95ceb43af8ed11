#include "core/model/decoder_kernels.h"

#include <algorithm>
#include <cmath>

namespace warpsmith {
namespace {

constexpr int64_t kRowsMax = 144;   // rows that run through the layers together: long prompts are cut
constexpr int64_t kQueryRows = 48;  // rows of queries an attention call
static_assert(kQueryRows <= kAttentionRowsMax);

int64_t NumKeyValueElements(const ModelConfig& c, int64_t num_slots, int64_t max_tokens) {
  return 2 * c.num_hidden_layers * num_slots * c.num_key_value_heads * RoundUp(max_tokens, kPanelColumns) *
         c.head_dim;
}

// Query heads of a group that attend in one call.
int64_t HeadsTogether(const ModelConfig& c) { return std::min(c.group_size(), kAttentionRowsMax); }

}  // namespace

KernelKvCache::KernelKvCache(const ModelConfig& config, int num_slots, int64_t max_tokens)
    : num_slots_(num_slots),
      max_tokens_(max_tokens),
      padded_(RoundUp(max_tokens, kPanelColumns)),
      num_layers_(config.num_hidden_layers),
      num_heads_(config.num_key_value_heads),
      head_dim_(config.head_dim),
      memory_(new float[NumKeyValueElements(config, num_slots, max_tokens)]()) {}

void KernelKvCache::CopyPrefix(int from, int to, int64_t num_tokens) {
  const int64_t num_key_elements = RoundUp(num_tokens, kPanelColumns) * head_dim_;
  for (int64_t layer = 0; layer < num_layers_; ++layer) {
    for (int64_t head = 0; head < num_heads_; ++head) {
      std::copy_n(key_panels(layer, from, head), num_key_elements, key_panels(layer, to, head));
      std::copy_n(values(layer, from, head), num_tokens * head_dim_, values(layer, to, head));
    }
  }
}

void DecoderKernels::Rows::Reserve(const ModelConfig& c, int64_t num_rows, int64_t max_tokens) {
  const auto grow = [](std::vector<float>& memory, int64_t size) {
    if (static_cast<int64_t>(memory.size()) < size) memory.resize(size);
  };
  grow(x, num_rows * c.hidden_size);
  grow(normed, num_rows * c.hidden_size);
  grow(qkv, num_rows * c.qkv_size());
  grow(rotated, num_rows * c.qkv_size());
  grow(attended, num_rows * c.query_size());
  grow(gate_up, num_rows * 2 * c.intermediate_size);
  grow(activated, num_rows * c.intermediate_size);
  grow(scores, std::max(kQueryRows, HeadsTogether(c)) * RoundUp(max_tokens, kPanelColumns));
}

DecoderKernels::DecoderKernels(const ModelConfig& config, int64_t num_token_ids, ThreadPool* pool)
    : layout_(config),
      config_(layout_.config()),
      kernels_(Kernels<float>()),
      num_token_ids_(num_token_ids),
      pool_(pool),
      eps_(static_cast<float>(config.rms_norm_eps)),
      rotary_(config.head_dim, config.rope_theta, config.rope_scaling),
      flat_(layout_.num_buffers()),
      layers_(config.num_hidden_layers),
      rows_(NumThreads(pool)) {
  std::vector<const float*> zeros;
  for (int i = 0; i < layout_.num_buffers(); ++i) {
    flat_[i].resize(layout_.buffers()[i].size);
    zeros.push_back(flat_[i].data());
  }
  SetWeights(zeros);
}

void DecoderKernels::SetWeights(const std::vector<const float*>& buffers) {
  for (int i = 0; i < layout_.num_buffers(); ++i) {
    if (buffers[i] != flat_[i].data()) std::copy_n(buffers[i], flat_[i].size(), flat_[i].data());
  }
  for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    layers_[layer].Pack(layout_, static_cast<const float*>(flat_[layout_.layer_buffer(layer)].data()), pool_);
  }
  const int buffer = config_.tie_word_embeddings ? layout_.embedding_buffer() : layout_.final_buffer();
  const int64_t offset = config_.tie_word_embeddings ? 0 : layout_.entry(buffer, "head").offset;
  head_.Pack(flat_[buffer].data() + offset, num_token_ids_, config_.hidden_size, pool_);
}

void DecoderKernels::Run(const std::vector<DecoderSpan>& spans, KernelKvCache& cache) {
  int64_t total = 0, last_position = 0;
  for (const DecoderSpan& span : spans) {
    total += span.count;
    last_position = std::max(last_position, span.first_position + span.count);
  }
  rotary_.Reserve(last_position);
  // Shares of about equal rows, in whole spans: threads then never wait for each other within a step.
  const int64_t shares = NumThreads(pool_);
  std::vector<size_t> begin = {0};
  int64_t rows = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    rows += spans[i].count;
    if (rows * shares >= total * static_cast<int64_t>(begin.size())) begin.push_back(i + 1);
  }
  ParallelFor(pool_, static_cast<int64_t>(begin.size()) - 1, [&](int64_t share, int worker) {
    rows_[worker].Reserve(config_, kRowsMax, cache.max_tokens());
    RunSpans(spans.data() + begin[share], begin[share + 1] - begin[share], cache, rows_[worker]);
  });
}

void DecoderKernels::RunSpans(const DecoderSpan* spans, int64_t count, KernelKvCache& cache, Rows& rows) {
  std::vector<DecoderSpan> together;
  int64_t num_rows = 0;
  for (int64_t i = 0; i < count; ++i) {
    DecoderSpan left = spans[i];
    while (left.count > 0) {
      DecoderSpan part = left;
      part.count = std::min(left.count, kRowsMax - num_rows);
      left.count -= part.count;
      left.first_position += part.count;
      left.token_ids += part.count;
      if (left.count > 0) part.logits = nullptr;
      together.push_back(part);
      num_rows += part.count;
      if (num_rows < kRowsMax) continue;
      RunRows(together, num_rows, cache, rows);
      together.clear();
      num_rows = 0;
    }
  }
  if (num_rows > 0) RunRows(together, num_rows, cache, rows);
}

void DecoderKernels::RunRows(const std::vector<DecoderSpan>& spans, int64_t num_rows, KernelKvCache& cache,
                             Rows& rows) {
  const int64_t d = config_.hidden_size;
  float* x = rows.x.data();
  for (const DecoderSpan& span : spans) {
    for (int64_t i = 0; i < span.count; ++i, x += d)
      std::copy_n(flat_[0].data() + span.token_ids[i] * d, d, x);
  }
  for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer)
    RunLayer(layer, spans, num_rows, cache, rows);
  WriteLogits(spans, rows);
}

void DecoderKernels::RunLayer(int64_t layer, const std::vector<DecoderSpan>& spans, int64_t num_rows,
                              KernelKvCache& cache, Rows& rows) {
  const int64_t d = config_.hidden_size, q = config_.query_size(), i = config_.intermediate_size;
  const PackedLayer<float>& packed = layers_[layer];
  float* x = rows.x.data();
  float* normed = rows.normed.data();
  for (int64_t r = 0; r < num_rows; ++r) {
    kernels_.rms_norm(x + r * d, packed.weights.input_norm, d, eps_, normed + r * d);
  }
  packed.ApplyQkv(normed, num_rows, rows.qkv.data());
  int64_t row = 0;
  for (const DecoderSpan& span : spans) {
    AppendAndAttend(layer, span, row, cache, rows);
    row += span.count;
  }
  packed.output.Apply(rows.attended.data(), q, num_rows, x, d, ProductMode::kAdd);
  for (int64_t r = 0; r < num_rows; ++r) {
    kernels_.rms_norm(x + r * d, packed.weights.post_norm, d, eps_, normed + r * d);
  }
  packed.gate_up.Apply(normed, d, num_rows, rows.gate_up.data(), 2 * i, ProductMode::kStore);
  kernels_.swiglu(rows.gate_up.data(), num_rows * i, rows.activated.data());
  packed.down.Apply(rows.activated.data(), i, num_rows, x, d, ProductMode::kAdd);
}

void DecoderKernels::AppendAndAttend(int64_t layer, const DecoderSpan& span, int64_t row,
                                     KernelKvCache& cache, Rows& rows) {
  const int64_t h = config_.head_dim, p = config_.qkv_size(), heads = config_.group_size();
  const LayerPointers<const float>& w = layers_[layer].weights;
  for (int64_t group = 0; group < config_.num_key_value_heads; ++group) {
    const int64_t offset = row * p + group * (heads + 2) * h;
    float* key_panels = cache.key_panels(layer, span.slot, group);
    float* values = cache.values(layer, span.slot, group);
    for (int64_t i = 0; i < span.count; ++i) {
      const int64_t position = span.first_position + i;
      const float* qkv = rows.qkv.data() + offset + i * p;
      float* rotated = rows.rotated.data() + offset + i * p;
      for (int64_t head = 0; head <= heads; ++head) {
        kernels_.norm_rotate(qkv + head * h, head < heads ? w.query_norm : w.key_norm,
                             rotary_.cosine(position), rotary_.sine(position), h, eps_, rotated + head * h);
      }
      float* column = key_panels + position / kPanelColumns * kPanelColumns * h + position % kPanelColumns;
      for (int64_t j = 0; j < h; ++j) column[j * kPanelColumns] = rotated[heads * h + j];
      std::copy_n(qkv + (heads + 1) * h, h, values + position * h);
    }
    AttendHead(span, rows.rotated.data() + offset, key_panels, values, rows.scores.data(),
               rows.attended.data() + row * config_.query_size() + group * heads * h);
  }
}

// All query heads of a group. A single token's heads are the rows of one call, which read keys and values
// once, or of a few calls where a group has more than kAttentionRowsMax.
void DecoderKernels::AttendHead(const DecoderSpan& span, const float* query, const float* key_panels,
                                const float* values, float* scores, float* out) const {
  const int64_t h = config_.head_dim, p = config_.qkv_size(), q = config_.query_size(),
                heads = config_.group_size();
  Attention<float> attention;
  attention.head_dim = h;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(h));
  attention.key_panels = key_panels;
  attention.value = values;
  attention.value_stride = h;
  attention.scores = scores;
  if (span.count == 1) {
    attention.visible_first = span.first_position + 1;
    attention.query_stride = h;
    attention.out_stride = h;
    for (int64_t head = 0; head < heads; head += HeadsTogether(config_)) {
      attention.rows = std::min(HeadsTogether(config_), heads - head);
      attention.query = query + head * h;
      attention.out = out + head * h;
      kernels_.attention(attention);
    }
    return;
  }
  attention.visible_step = 1;
  attention.query_stride = p;
  attention.out_stride = q;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < span.count; row += kQueryRows) {
      attention.rows = std::min(kQueryRows, span.count - row);
      attention.visible_first = span.first_position + row + 1;
      attention.query = query + row * p + head * h;
      attention.out = out + row * q + head * h;
      kernels_.attention(attention);
    }
  }
}

// The rows that want logits are gathered first, so that they share the reading of the head.
void DecoderKernels::WriteLogits(const std::vector<DecoderSpan>& spans, Rows& rows) {
  const int64_t d = config_.hidden_size, v = num_token_ids_;
  const float* weight =
      flat_[layout_.final_buffer()].data() + layout_.entry(layout_.final_buffer(), "norm").offset;
  int64_t row = 0, wanted = 0;
  for (const DecoderSpan& span : spans) {
    row += span.count;
    if (span.logits == nullptr) continue;
    kernels_.rms_norm(rows.x.data() + (row - 1) * d, weight, d, eps_, rows.normed.data() + wanted++ * d);
  }
  std::vector<float>& logits = rows.gate_up;
  if (static_cast<int64_t>(logits.size()) < wanted * v) logits.resize(wanted * v);
  head_.Apply(rows.normed.data(), d, wanted, logits.data(), v, ProductMode::kStore);
  wanted = 0;
  for (const DecoderSpan& span : spans) {
    if (span.logits != nullptr) std::copy_n(logits.data() + wanted++ * v, v, span.logits);
  }
}

}  // namespace warpsmith
