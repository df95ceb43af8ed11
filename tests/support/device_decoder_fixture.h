// Small decoders for a GPU and steps over them, for tests. Torch is needed by whoever includes this.
#ifndef WARPSMITH_TESTS_SUPPORT_DEVICE_DECODER_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_DEVICE_DECODER_FIXTURE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/model/device_decoder.h"
#include "core/model/operator_model.h"
#include "core/model/parameters.h"
#include "tests/gpu/device_array.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {

inline ModelConfig DeviceConfig(int64_t heads, int64_t key_value_heads, int64_t head_dim) {
  return WithHeads(OddConfig(), heads, key_value_heads, head_dim);
}

// Every architecture and scaling, groups of 1, 5 and 8 query heads, heads of 64 and 128, tied and untied.
inline std::vector<NamedConfig> DeviceFamilyConfigs() {
  std::vector<NamedConfig> configs = {{"Qwen3", DeviceConfig(2, 2, 128)},
                                      {"Qwen3, yarn", DeviceConfig(8, 1, 128)},
                                      {"Qwen2", DeviceConfig(10, 2, 64)},
                                      {"Qwen2, linear", DeviceConfig(5, 1, 128)},
                                      {"Llama, llama3", DeviceConfig(8, 1, 64)}};
  configs[1].config.rope_scaling = YarnScaling();
  configs[3].config.rope_scaling = {.type = RopeType::kLinear, .factor = 3};
  configs[4].config.rope_scaling = Llama3Scaling();
  for (const int qwen2 : {2, 3}) configs[qwen2].config.qkv_bias = true;
  for (const int other : {2, 3, 4}) configs[other].config.qk_norm = false;
  for (const int untied : {1, 2}) configs[untied].config.tie_word_embeddings = false;
  return configs;
}

// float32 values that bfloat16 has, such that every part of a layer matters: rows of matrices have length 1, norms are
// around 1, biases within 0.5.
inline Parameters DeviceParameters(const ModelConfig& config, uint64_t seed) {
  Parameters parameters{ParameterLayout(config)};
  uint64_t stream = seed;
  for (const HfTensorLayout& tensor : parameters.layout().hf_tensors()) {
    ++stream;
    const bool matrix = tensor.shape.size() == 2;
    const bool bias = tensor.name.find(".bias") != std::string::npos;
    const double width = matrix ? std::sqrt(3.0 / static_cast<double>(tensor.shape[1])) : (bias ? 0.5 : 0.25);
    const double middle = matrix || bias ? 0.0 : 1.0;
    for (const CopyRun& run : tensor.runs) {
      float* const to = parameters.buffer(tensor.buffer).mutable_data_ptr<float>() + run.buffer_offset;
      for (int64_t i = 0; i < run.length; ++i) {
        to[i] = static_cast<float>(middle + width * (2 * UniformDouble(stream, run.hf_offset + i) - 1));
      }
    }
  }
  parameters.CopyFrom(parameters.Clone(at::kBFloat16));
  return parameters;
}

inline DeviceDecoderOptions SmallOptions(std::vector<int64_t> row_buckets,
                                         DeviceDtype dtype = DeviceDtype::kBfloat16) {
  return {.dtype = dtype,
          .num_pages = 40,
          .page_tokens = 16,
          .rows_max = row_buckets.back(),
          .logits_rows_max = 8,
          .context_tokens_max = 200,
          .num_token_ids = 97,
          .row_buckets = std::move(row_buckets)};
}

// Consecutive tokens of one sequence.
struct DeviceChunk {
  int sequence = 0;
  std::vector<int32_t> token_ids;
  bool wants_logits = true;
};

// Arrays of a step on the device.
struct DeviceStepArrays {
  static std::vector<int32_t> NotEmpty(std::vector<int32_t> values) {
    if (values.empty()) values.push_back(0);
    return values;
  }

  DeviceVector<int32_t> row_indptr, page_indptr, page_indices, token_ids, token_slots, last_tokens, positions,
      kv_entries, logits_rows;
  DeviceStep step;
};

// Keeps pages and positions of sequences as a planner does, with pages in a scattered order, and runs steps. The last
// token of every other chunk comes from a slot, as sampled tokens do.
class DeviceSequences {
 public:
  DeviceSequences(DeviceDecoder& decoder, const DeviceDecoderOptions& options)
      : decoder_(decoder), options_(options) {}

  // The step's arrays, for a caller that launches it; positions advance.
  std::unique_ptr<DeviceStepArrays> Plan(const std::vector<DeviceChunk>& chunks) {
    std::vector<int32_t> row_indptr = {0}, page_indptr = {0}, page_indices, token_ids, token_slots,
                         last_tokens, positions, kv_entries, logits_rows;
    int64_t rows_of_query_max = 1;
    for (const DeviceChunk& chunk : chunks) {
      Sequence& sequence = sequences_[chunk.sequence];
      for (const int32_t token : chunk.token_ids) {
        const int64_t offset = sequence.tokens % options_.page_tokens;
        if (offset == 0) sequence.pages.push_back(TakePage());
        positions.push_back(static_cast<int32_t>(sequence.tokens++));
        kv_entries.push_back(static_cast<int32_t>(sequence.pages.back() * options_.page_tokens + offset));
        token_ids.push_back(token);
        token_slots.push_back(0);
      }
      if (chunk.sequence % 2 == 1) {
        token_slots.back() = static_cast<int32_t>(last_tokens.size());
        last_tokens.push_back(token_ids.back());
        token_ids.back() = -1;
      }
      page_indices.insert(page_indices.end(), sequence.pages.begin(), sequence.pages.end());
      page_indptr.push_back(static_cast<int32_t>(page_indices.size()));
      row_indptr.push_back(static_cast<int32_t>(token_ids.size()));
      if (chunk.wants_logits) logits_rows.push_back(row_indptr.back() - 1);
      rows_of_query_max = std::max<int64_t>(rows_of_query_max, std::ssize(chunk.token_ids));
    }
    const auto full = DeviceStepArrays::NotEmpty;
    // Built in place: arrays of the device do not move.
    std::unique_ptr<DeviceStepArrays> arrays(new DeviceStepArrays{DeviceVector<int32_t>(row_indptr),
                                                                  DeviceVector<int32_t>(page_indptr),
                                                                  DeviceVector<int32_t>(page_indices),
                                                                  DeviceVector<int32_t>(token_ids),
                                                                  DeviceVector<int32_t>(token_slots),
                                                                  DeviceVector<int32_t>(full(last_tokens)),
                                                                  DeviceVector<int32_t>(positions),
                                                                  DeviceVector<int32_t>(kv_entries),
                                                                  DeviceVector<int32_t>(full(logits_rows)),
                                                                  {}});
    arrays->step = {.num_queries = std::ssize(chunks),
                    .num_rows = std::ssize(token_ids),
                    .num_logits_rows = std::ssize(logits_rows),
                    .rows_of_query_max = rows_of_query_max,
                    .row_indptr = arrays->row_indptr.get(),
                    .page_indptr = arrays->page_indptr.get(),
                    .page_indices = arrays->page_indices.get(),
                    .token_ids = arrays->token_ids.get(),
                    .token_slots = arrays->token_slots.get(),
                    .last_tokens = arrays->last_tokens.get(),
                    .positions = arrays->positions.get(),
                    .kv_entries = arrays->kv_entries.get(),
                    .logits_rows = arrays->logits_rows.get()};
    return arrays;
  }

  // Logits of the chunks that want them, in order.
  std::vector<std::vector<float>> Run(const std::vector<DeviceChunk>& chunks) {
    const std::unique_ptr<DeviceStepArrays> arrays = Plan(chunks);
    const absl::Status status = decoder_.Launch(arrays->step, nullptr);
    WS_CHECK(status.ok()) << status.message();
    return Logits(arrays->step.num_logits_rows);
  }

  // Of the last step; waits for the device.
  std::vector<std::vector<float>> Logits(int64_t count) const {
    const int64_t ids = options_.num_token_ids, stride = decoder_.logits_stride();
    std::vector<std::vector<float>> logits(count, std::vector<float>(ids));
    WS_CHECK(cudaDeviceSynchronize() == cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    for (int64_t row = 0; row < count; ++row) {
      WS_CHECK(cudaMemcpy(logits[row].data(), decoder_.logits() + row * stride, ids * sizeof(float),
                          cudaMemcpyDeviceToHost) == cudaSuccess);
    }
    return logits;
  }

 private:
  struct Sequence {
    int64_t tokens = 0;
    std::vector<int32_t> pages;
  };

  // 7 has no common divisor with any number of pages that a test uses.
  int32_t TakePage() {
    WS_CHECK(pages_taken_ < options_.num_pages) << "no page is left";
    return static_cast<int32_t>((7 * pages_taken_++ + 3) % options_.num_pages);
  }

  DeviceDecoder& decoder_;
  DeviceDecoderOptions options_;
  int64_t pages_taken_ = 0;
  std::map<int, Sequence> sequences_;
};

inline std::vector<int32_t> DeviceTokens(const ModelConfig& config, int64_t count, uint64_t seed) {
  const std::vector<int64_t> tokens = RandomTokens(config, count, seed);
  return {tokens.begin(), tokens.end()};
}

// Logits [T, V] of every position of a sequence, by operators in the dtype of the parameters.
inline at::Tensor OperatorSequenceLogits(const Parameters& parameters, const std::vector<int32_t>& tokens) {
  PackedBatch batch;
  batch.Append({tokens.begin(), tokens.end()});
  return OperatorLogits(parameters, OperatorForward(parameters, batch)).to(at::kDouble).contiguous();
}

// Root of the mean square of what was added.
class RootMeanSquare {
 public:
  void Add(double value) {
    sum_ += value * value;
    ++count_;
  }
  double value() const { return std::sqrt(sum_ / static_cast<double>(count_)); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// Errors against float64, and its logits, over prompts and decoded tokens of three sequences.
struct DecoderErrors {
  RootMeanSquare device, operators, exact;
  double device_max = 0;
};

// Prefills sequences of 21, 1 and 50 tokens, the last in two chunks beside what decodes, then decodes 5 tokens of each.
inline DecoderErrors MeasureErrors(DeviceDecoder& decoder, const DeviceDecoderOptions& options,
                                   const Parameters& parameters) {
  constexpr int kSequences = 3, kDecodes = 5;
  const ModelConfig& config = parameters.config();
  const std::vector<int64_t> prompts = {21, 1, 50};
  std::vector<std::vector<int32_t>> tokens;
  std::vector<at::Tensor> exact, rounded;
  const Parameters doubles = parameters.Clone(at::kDouble), halves = parameters.Clone(at::kBFloat16);
  for (int s = 0; s < kSequences; ++s) {
    tokens.push_back(DeviceTokens(config, prompts[s] + kDecodes, 100 + s));
    exact.push_back(OperatorSequenceLogits(doubles, tokens[s]));
    rounded.push_back(OperatorSequenceLogits(halves, tokens[s]));
  }
  DecoderErrors errors;
  const auto add = [&](int s, int64_t position, const std::vector<float>& logits) {
    const double* const right = exact[s].const_data_ptr<double>() + position * config.vocab_size;
    const double* const near = rounded[s].const_data_ptr<double>() + position * config.vocab_size;
    for (size_t i = 0; i < logits.size(); ++i) {
      errors.device.Add(logits[i] - right[i]);
      errors.device_max = std::max(errors.device_max, std::abs(logits[i] - right[i]));
      errors.exact.Add(right[i]);
      errors.operators.Add(near[i] - right[i]);
    }
  };
  const auto part = [&](int s, int64_t begin, int64_t end, bool wants_logits = true) {
    return DeviceChunk{s, {tokens[s].begin() + begin, tokens[s].begin() + end}, wants_logits};
  };
  DeviceSequences sequences(decoder, options);
  std::vector<std::vector<float>> logits = sequences.Run({part(0, 0, 21), part(1, 0, 1)});
  add(0, 20, logits[0]);
  add(1, 0, logits[1]);
  logits = sequences.Run({part(0, 21, 22), part(1, 1, 2), part(2, 0, 33, false)});
  add(0, 21, logits[0]);
  add(1, 1, logits[1]);
  logits = sequences.Run({part(0, 22, 23), part(2, 33, 50)});
  add(0, 22, logits[0]);
  add(2, 49, logits[1]);
  for (int64_t step = 0; step < 2; ++step) {
    const std::vector<int64_t> next = {23 + step, 2 + step, 50 + step};
    logits = sequences.Run(
        {part(0, next[0], next[0] + 1), part(1, next[1], next[1] + 1), part(2, next[2], next[2] + 1)});
    for (int s = 0; s < kSequences; ++s) add(s, next[s], logits[s]);
  }
  return errors;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_DEVICE_DECODER_FIXTURE_H_
