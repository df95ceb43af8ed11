// A decoding step of a Qwen3 on a GPU with random weights, and how long what is launched takes: for benches.
#ifndef WARPSMITH_TESTS_BENCH_DECODE_STEP_H_
#define WARPSMITH_TESTS_BENCH_DECODE_STEP_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/check.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/model/device_decoder.h"
#include "core/model/device_weights_cuda.h"
#include "tests/gpu/device_array.h"

namespace warpsmith {

inline constexpr int kReplays = 50;
inline constexpr int64_t kPageTokens = 16;

inline void Check(cudaError_t error, const char* what) {
  WS_CHECK(error == cudaSuccess) << what << ": " << cudaGetErrorString(error);
}
inline void Check(const absl::Status& status) { WS_CHECK(status.ok()) << status.message(); }

inline ModelConfig ShapeOf(const std::string& model) {
  ModelConfig config{.vocab_size = 151936, .max_position_embeddings = 40960, .rope_theta = 1e6};
  config.num_key_value_heads = 8;
  if (model == "0.6B") {
    config.hidden_size = 1024;
    config.intermediate_size = 3072;
    config.num_hidden_layers = 28;
    config.num_attention_heads = 16;
    config.tie_word_embeddings = true;
  } else if (model == "32B") {
    config.hidden_size = 5120;
    config.intermediate_size = 25600;
    config.num_hidden_layers = 64;
    config.num_attention_heads = 64;
  } else {
    WS_CHECK(model == "8B") << model << " is none of 0.6B, 8B and 32B";
    config.hidden_size = 4096;
    config.intermediate_size = 12288;
    config.num_hidden_layers = 36;
    config.num_attention_heads = 32;
  }
  return config;
}

// With a second bucket, which nothing runs in, products are cuBLASLt's.
inline DeviceDecoderOptions OptionsOf(int64_t sequences, int64_t context, bool whole) {
  DeviceDecoderOptions options{.page_tokens = kPageTokens};
  options.num_pages = sequences * ((context + kPageTokens - 1) / kPageTokens);
  options.row_buckets =
      whole ? std::vector<int64_t>{sequences} : std::vector<int64_t>{sequences, sequences + 1};
  options.rows_max = options.row_buckets.back();
  options.logits_rows_max = sequences;
  options.context_tokens_max = context;
  return options;
}

// The arrays of a step in which every sequence has CONTEXT tokens, on scattered pages. It can be repeated.
struct DecodeStep {
  DecodeStep(const ModelConfig& config, const DeviceDecoderOptions& options, int64_t sequences,
             int64_t context)
      : rows(Counted(sequences + 1, [](int64_t i) { return i; })),
        page_indptr(Counted(sequences + 1, [&](int64_t i) { return i * options.num_pages / sequences; })),
        page_indices(Counted(options.num_pages, [&](int64_t i) { return Page(options, i); })),
        token_ids(Counted(sequences, [&](int64_t i) { return i * 7919 % config.vocab_size; })),
        positions(Counted(sequences, [&](int64_t) { return context - 1; })),
        kv_entries(Counted(sequences, [&](int64_t i) {
          const int64_t last = (i + 1) * (options.num_pages / sequences) - 1;
          return Page(options, last) * kPageTokens + (context - 1) % kPageTokens;
        })) {
    step = {.num_queries = sequences,
            .num_rows = sequences,
            .num_logits_rows = sequences,
            .rows_of_query_max = 1,
            .row_indptr = rows.get(),
            .page_indptr = page_indptr.get(),
            .page_indices = page_indices.get(),
            .token_ids = token_ids.get(),
            .token_slots = rows.get(),
            .last_tokens = token_ids.get(),
            .positions = positions.get(),
            .kv_entries = kv_entries.get(),
            .logits_rows = rows.get()};
  }

  static std::vector<int32_t> Counted(int64_t count, const std::function<int64_t(int64_t)>& value) {
    std::vector<int32_t> values(count);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(value(i));
    return values;
  }
  // A prime stride scatters them; it divides no number of pages that fits a GPU's memory here.
  static int64_t Page(const DeviceDecoderOptions& options, int64_t i) {
    constexpr int64_t kStride = 15485863;
    return options.num_pages % kStride == 0 ? i : i * kStride % options.num_pages;
  }

  DeviceVector<int32_t> rows, page_indptr, page_indices, token_ids, positions, kv_entries;
  DeviceStep step;
};

inline double MedianMilliseconds(cudaStream_t stream, const std::function<void()>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  Check(cudaEventCreate(&begin), "event");
  Check(cudaEventCreate(&end), "event");
  std::vector<float> milliseconds;
  for (int run = 0; run < kReplays + 3; ++run) {
    float elapsed = 0;
    Check(cudaEventRecord(begin, stream), "event");
    launch();
    Check(cudaEventRecord(end, stream), "event");
    Check(cudaEventSynchronize(end), "kernels");
    Check(cudaEventElapsedTime(&elapsed, begin, end), "event");
    if (run >= 3) milliseconds.push_back(elapsed);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kReplays / 2, milliseconds.end());
  return milliseconds[kReplays / 2];
}

// Of what `launch` puts on the stream, as one graph. Once before, so that no kernel is loaded inside the capture.
inline double GraphMilliseconds(cudaStream_t stream, const std::function<void()>& launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  launch();
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  launch();
  Check(cudaStreamEndCapture(stream, &graph), "capture");
  Check(cudaGraphInstantiate(&ready, graph, 0), "graph");
  const double median = MedianMilliseconds(stream, [&] { Check(cudaGraphLaunch(ready, stream), "graph"); });
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  return median;
}

// Random weights and pages, of which those of one seed are equal on all shards.
inline void FillForBench(DeviceDecoder& decoder) {
  Check(LaunchRandomNormals(decoder.weights().base(), decoder.weights().size(), 1, 0.02f, nullptr),
        "weights");
  Check(LaunchRandomNormals(decoder.pages(), decoder.num_planes() * decoder.plane_stride(), 2, 1.0f, nullptr),
        "pages");
  Check(cudaDeviceSynchronize(), "random values");
}

// Bytes that a step reads on the GPU.
inline double BytesOfStep(const DeviceDecoder& decoder, int64_t sequences, int64_t context) {
  return static_cast<double>(decoder.weight_bytes()) +
         static_cast<double>(sequences * context) * static_cast<double>(decoder.entry_bytes());
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_BENCH_DECODE_STEP_H_
