// Where the time of a decoding step on a GPU goes, with random weights:
//
//   device_decode_rates MODEL SEQUENCES CONTEXT [whole] [--devices 0,1]
//
// MODEL is the shape of a Qwen3: 0.6B, 8B, 32B. SEQUENCES decode one token each at CONTEXT tokens. `whole`: sums of
// products are not cut, as in the batch-invariant mode. Prints the step launched and replayed as a graph, its share of
// what a copy on the same device attains, and what each group of kernels takes when the calls of all layers run alone.
// Of GPUs that share the model: the step, its share of what copies on all of them attain together, and its exchanges
// alone.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/distributed/nccl_environment.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/model/device_attention_cuda.h"
#include "core/model/device_decoder.h"
#include "core/model/device_memory.h"
#include "core/model/device_memory_plan.h"
#include "core/model/device_products_cuda.h"
#include "core/model/device_weights_cuda.h"
#include "tests/bench/decode_step.h"
#include "tests/bench/device_group_step.h"
#include "tests/gpu/device_rate.h"

namespace warpsmith {
namespace {

// Each group of kernels of the step, alone, on memory of its own and the decoder's weights and pages.
class Groups {
 public:
  Groups(DeviceDecoder& decoder, const DeviceDecoderOptions& options, const DecodeStep& arrays,
         double copy_rate, cudaStream_t stream)
      : decoder_(decoder),
        options_(options),
        config_(decoder.weights().layout().config()),
        step_(arrays.step),
        copy_rate_(copy_rate),
        stream_(stream),
        places_(PlaceScratch(config_, options, AttentionWorkspaceBytes(config_, options))),
        scratch_(DeviceMemory::Zeros(places_.bytes).value()),
        evicted_(DeviceMemory::Zeros(kEvictedBytes).value()) {
    WS_CHECK(cublasLtCreate(&handle_) == CUBLAS_STATUS_SUCCESS) << "cublasLtCreate";
    Check(LaunchRandomNormals(At(0), places_.logits / 2, 3, 1.0f, stream), "random activations");
    const std::vector<float> table(options.context_tokens_max * config_.head_dim / 2, 0.7f);
    for (const int64_t place : {places_.cosines, places_.sines}) {
      Check(cudaMemcpy(At(place), table.data(), table.size() * sizeof(float), cudaMemcpyHostToDevice),
            "table");
    }
  }
  ~Groups() { cublasLtDestroy(handle_); }

  // Milliseconds of all of them.
  double Print() {
    const int64_t d = config_.hidden_size, f = config_.intermediate_size, layers = config_.num_hidden_layers;
    const auto layer = [this](int64_t i, const char* entry) {
      return decoder_.weights().Find(decoder_.weights().layout().layer_buffer(i), entry);
    };
    const auto weights = [&](const char* entry) { return [=](int64_t i) { return layer(i, entry); }; };
    double sum = 0;
    sum += Product("qkv", {config_.qkv_size(), d}, options_.row_buckets, layers, places_.normed, places_.qkv,
                   weights("qkv"));
    sum += Product("output", {d, config_.query_size(), false, true}, options_.row_buckets, layers,
                   places_.attended, places_.x, weights("output"));
    sum += Product("gate_up", {2 * f, d}, options_.row_buckets, layers, places_.normed, places_.gate_up,
                   weights("gate_up"));
    sum += Product("down", {d, f, false, true}, options_.row_buckets, layers, places_.activated, places_.x,
                   weights("down"));
    sum += Product("head", {LogitsStride(config_, 0), d, false, false, LinearOutput::kFloat32},
                   LogitsRowBuckets(options_), 1, places_.last_normed, places_.logits, [&](int64_t) {
                     const ParameterLayout& layout = decoder_.weights().layout();
                     return config_.tie_word_embeddings
                                ? decoder_.weights().Find(0, "embedding")
                                : decoder_.weights().Find(layout.final_buffer(), "head");
                   });
    sum += PrintAttention();
    sum += PrintElementwise(layer);
    return sum;
  }

 private:
  static constexpr int64_t kEvictedBytes = int64_t{128} << 20;

  __nv_bfloat16* At(int64_t place) const { return reinterpret_cast<__nv_bfloat16*>(scratch_.get() + place); }
  float* FloatsAt(int64_t place) const { return reinterpret_cast<float*>(scratch_.get() + place); }

  double Line(const char* name, int64_t calls, double bytes, double flops,
              const std::function<void()>& launch) {
    const double milliseconds = GraphMilliseconds(stream_, launch), rate = bytes / milliseconds * 1e-6;
    std::printf("  %-18s %3lld calls  %8.3f ms  %7.1f us a call  %6.0f GB/s, share %.2f  %6.1f TFLOP/s\n",
                name, static_cast<long long>(calls), milliseconds,
                milliseconds * 1e3 / static_cast<double>(calls), rate, rate / copy_rate_,
                flops / milliseconds * 1e-9);
    return milliseconds;
  }

  double Product(const char* name, const LinearShape& shape, const std::vector<int64_t>& buckets,
                 int64_t calls, int64_t x, int64_t y,
                 const std::function<const __nv_bfloat16*(int64_t)>& weight) {
    LinearPlans plans(handle_, {At(places_.products), static_cast<size_t>(kProductWorkspaceBytes)}, buckets,
                      DepthSplit::kAllowed, kStepSearch);
    const auto operands = [&](int64_t call) {
      return LinearOperands{At(x), weight(call), nullptr, shape.has_residual ? At(y) : nullptr, At(y)};
    };
    const bool streamed = options_.row_buckets.size() == 1 || step_.num_rows <= kStreamedRowsMax;
    const CublasWorkspace evicted = {evicted_.get(), static_cast<size_t>(kEvictedBytes)};
    WS_CHECK(streamed || plans.Prepare(shape, operands(0), evicted, nullptr) == CUBLAS_STATUS_SUCCESS)
        << name;
    const int64_t rows = step_.num_rows;
    const double weights = static_cast<double>(shape.columns * shape.depth * calls);
    const double output = shape.output == LinearOutput::kFloat32 ? 4 : (shape.has_residual ? 4 : 2);
    const double bytes =
        2 * weights + static_cast<double>(rows * calls) * (2 * static_cast<double>(shape.depth) +
                                                           output * static_cast<double>(shape.columns));
    return Line(name, calls, bytes, 2 * weights * static_cast<double>(rows), [&] {
      for (int64_t call = 0; call < calls; ++call) {
        if (streamed) {
          Check(LaunchStreamedLinear(shape, rows, operands(call), stream_, KernelStart::kBesideFormer), name);
        } else {
          WS_CHECK(plans.Launch(shape, rows, operands(call), stream_) == CUBLAS_STATUS_SUCCESS) << name;
        }
      }
    });
  }

  double PrintAttention() {
    const int64_t layers = config_.num_hidden_layers, plane = decoder_.plane_stride();
    const double entries = static_cast<double>(step_.num_rows * options_.context_tokens_max);
    const double flops = 4 * entries * static_cast<double>(config_.query_size() * layers);
    return Line("attention", layers, entries * static_cast<double>(decoder_.entry_bytes()), flops, [&] {
      for (int64_t layer = 0; layer < layers; ++layer) {
        const __nv_bfloat16* const keys = decoder_.pages() + 2 * layer * plane;
        Check(LaunchPagedAttention(
                  {step_.num_queries, step_.num_rows, config_.num_key_value_heads, config_.group_size(),
                   config_.head_dim, kPageTokens, 1 / std::sqrt(static_cast<float>(config_.head_dim)),
                   step_.row_indptr, step_.page_indptr, step_.page_indices, step_.positions,
                   At(places_.queries), keys, keys + plane, At(places_.attended)},
                  {1, options_.context_tokens_max}, At(places_.attention), stream_),
              "attention");
      }
    });
  }

  double PrintElementwise(const std::function<const __nv_bfloat16*(int64_t, const char*)>& layer) {
    const int64_t layers = config_.num_hidden_layers, rows = step_.num_rows, plane = decoder_.plane_stride();
    const auto eps = static_cast<float>(config_.rms_norm_eps);
    const double row_bytes = 2 * static_cast<double>(rows * layers);
    double sum = Line("norms", 2 * layers, row_bytes * 4 * static_cast<double>(config_.hidden_size), 0, [&] {
      for (int64_t call = 0; call < 2 * layers; ++call) {
        const __nv_bfloat16* const weight = layer(call / 2, call % 2 == 0 ? "input_norm" : "post_norm");
        Check(LaunchResidualNorm(
                  {rows, config_.hidden_size, eps, At(places_.x), nullptr, weight, At(places_.normed)},
                  stream_),
              "norm");
      }
    });
    sum += Line("attention inputs", layers, row_bytes * 2 * static_cast<double>(config_.qkv_size()), 0, [&] {
      for (int64_t i = 0; i < layers; ++i) {
        __nv_bfloat16* const keys = decoder_.pages() + 2 * i * plane;
        Check(LaunchAttentionInputs(
                  {rows, config_.num_key_value_heads, config_.group_size(), config_.head_dim, eps,
                   At(places_.qkv), nullptr, layer(i, "query_norm"), layer(i, "key_norm"),
                   FloatsAt(places_.cosines), FloatsAt(places_.sines), step_.positions, step_.kv_entries,
                   At(places_.queries), keys, keys + plane},
                  stream_),
              "attention inputs");
      }
    });
    sum += Line("SwiGLU", layers, row_bytes * 3 * static_cast<double>(config_.intermediate_size), 0, [&] {
      for (int64_t i = 0; i < layers; ++i) {
        Check(LaunchSwiGlu({rows, config_.intermediate_size, At(places_.gate_up), At(places_.activated)},
                           stream_),
              "SwiGLU");
      }
    });
    return sum;
  }

  DeviceDecoder& decoder_;
  const DeviceDecoderOptions options_;
  const ModelConfig config_;
  const DeviceStep step_;
  const double copy_rate_;  // GB/s
  const cudaStream_t stream_;
  const DeviceScratch places_;
  const DeviceMemory scratch_, evicted_;
  cublasLtHandle_t handle_ = nullptr;
};

void Report(const std::string& model, int64_t sequences, int64_t context, bool whole) {
  const ModelConfig config = ShapeOf(model);
  const DeviceDecoderOptions options = OptionsOf(sequences, context, whole);
  absl::StatusOr<std::unique_ptr<DeviceDecoder>> made = DeviceDecoder::Create(config, options);
  Check(made.status());
  DeviceDecoder& decoder = **made;
  FillForBench(decoder);
  const DecodeStep arrays(config, options, sequences, context);
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream), "stream");

  const double copy_rate = 0x1p30 / CopySeconds(1 << 30) * 1e-9;
  const auto launch = [&] { Check(decoder.Launch(arrays.step, stream)); };
  const double launched = MedianMilliseconds(stream, launch), replayed = GraphMilliseconds(stream, launch);
  const double bytes = BytesOfStep(decoder, sequences, context);
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, 0), "properties");
  std::printf("%s: Qwen3-%s, %lld sequences of %lld tokens, %s sums; a copy of 1 GiB moves %.0f GB/s\n",
              properties.name, model.c_str(), static_cast<long long>(sequences),
              static_cast<long long>(context), whole ? "whole" : "cut", copy_rate);
  for (const auto& [name, milliseconds] : {std::pair("launched", launched), std::pair("graph", replayed)}) {
    std::printf("  %-18s %8.3f ms a step, %8.0f tok/s, %.2f GB at %5.0f GB/s, share %.2f\n", name,
                milliseconds, static_cast<double>(sequences) / milliseconds * 1e3, bytes * 1e-9,
                bytes / milliseconds * 1e-6, bytes / milliseconds * 1e-6 / copy_rate);
  }
  const double sum = Groups(decoder, options, arrays, copy_rate, stream).Print();
  std::printf("  %-18s            %8.3f ms: embedding, last norm, and what lies between kernels\n",
              "the rest", replayed - sum);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace warpsmith

// The flag's value, taken off `arguments`; nothing where it is not there.
static std::string TakeDevices(std::vector<std::string>& arguments) {
  const auto flag = std::find(arguments.begin(), arguments.end(), "--devices");
  if (flag == arguments.end() || flag + 1 == arguments.end()) return "";
  std::string devices = *(flag + 1);
  arguments.erase(flag, flag + 2);
  return devices;
}

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string devices = TakeDevices(arguments);
  if (arguments.size() < 3 || arguments.size() > 4 || std::atoll(arguments[1].c_str()) < 1 ||
      std::atoll(arguments[2].c_str()) < 1) {
    std::fprintf(stderr,
                 "usage: device_decode_rates 0.6B|8B|32B SEQUENCES CONTEXT [whole] [--devices 0,1]\n");
    return 2;
  }
  const int64_t sequences = std::atoll(arguments[1].c_str()), context = std::atoll(arguments[2].c_str());
  const bool whole = arguments.size() == 4;
  if (devices.empty()) {
    warpsmith::Report(arguments[0], sequences, context, whole);
  } else {
    warpsmith::ReportGroup(arguments[0], sequences, context, whole, devices);
  }
  return 0;
}
