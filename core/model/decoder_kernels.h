// Steps of the decoder over the CPU kernels: raw arrays, float32, no Torch.
#ifndef WARPSMITH_CORE_MODEL_DECODER_KERNELS_H_
#define WARPSMITH_CORE_MODEL_DECODER_KERNELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernels/thread_pool.h"
#include "core/model/layer_weights.h"
#include "core/model/rotary_table.h"

namespace warpsmith {

// Keys, transposed and in panels of 64 tokens as attention wants them, and values, of every layer, slot and
// key-value head.
class KernelKvCache {
 public:
  KernelKvCache(const ModelConfig& config, int num_slots, int64_t max_tokens);

  int num_slots() const { return num_slots_; }
  int64_t max_tokens() const { return max_tokens_; }

  float* key_panels(int64_t layer, int slot, int64_t head) { return Block(layer, slot, head); }
  // [max_tokens, head_dim]
  float* values(int64_t layer, int slot, int64_t head) {
    return Block(layer, slot, head) + padded_ * head_dim_;
  }

  // See KvCache::CopyPrefix. The last panel of keys is copied whole; what lies behind the prefix is not read.
  void CopyPrefix(int from, int to, int64_t num_tokens);

 private:
  float* Block(int64_t layer, int slot, int64_t head) {
    return memory_.get() + ((layer * num_slots_ + slot) * num_heads_ + head) * 2 * padded_ * head_dim_;
  }

  int num_slots_;
  int64_t max_tokens_, padded_, num_layers_, num_heads_, head_dim_;
  std::unique_ptr<float[]> memory_;  // zeros: pages are touched as slots fill
};

// `count` consecutive tokens of one slot.
struct DecoderSpan {
  int slot;
  int64_t first_position;
  const int32_t* token_ids;
  int64_t count;
  float* logits;  // [num_token_ids] of the last token, or null
};

class DecoderKernels {
 public:
  // Logits are those of the first `num_token_ids` rows of the head.
  DecoderKernels(const ModelConfig& config, int64_t num_token_ids, ThreadPool* pool);

  // Copies and packs the weights: a flat array for each buffer of the layout.
  void SetWeights(const std::vector<const float*>& buffers);

  // Runs the spans (slots distinct, everything in range), split among the threads by whole spans.
  void Run(const std::vector<DecoderSpan>& spans, KernelKvCache& cache);

 private:
  // Rows in flight of one thread.
  struct Rows {
    std::vector<float> x, normed, qkv, rotated, attended, gate_up, activated, scores;
    void Reserve(const ModelConfig& config, int64_t num_rows, int64_t max_tokens);
  };

  void RunSpans(const DecoderSpan* spans, int64_t count, KernelKvCache& cache, Rows& rows);
  void RunRows(const std::vector<DecoderSpan>& spans, int64_t num_rows, KernelKvCache& cache, Rows& rows);
  void RunLayer(int64_t layer, const std::vector<DecoderSpan>& spans, int64_t num_rows, KernelKvCache& cache,
                Rows& rows);
  void AppendAndAttend(int64_t layer, const DecoderSpan& span, int64_t row, KernelKvCache& cache, Rows& rows);
  void AttendHead(const DecoderSpan& span, const float* query, const float* key_panels, const float* values,
                  float* scores, float* out) const;
  void WriteLogits(const std::vector<DecoderSpan>& spans, Rows& rows);

  const ParameterLayout layout_;
  const ModelConfig& config_;
  const KernelSet<float>& kernels_;
  const int64_t num_token_ids_;
  ThreadPool* pool_;
  const float eps_;
  RotaryTable<float> rotary_;
  std::vector<std::vector<float>> flat_;  // embedding, layers, final
  std::vector<PackedLayer<float>> layers_;
  PackedMatrix<float> head_;
  std::vector<Rows> rows_;  // by worker
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DECODER_KERNELS_H_
