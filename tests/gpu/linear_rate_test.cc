#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Normals in device memory: zeros and other plain bits would let the device run at a higher clock.
class Normals {
 public:
  Normals(int64_t size, uint64_t seed, float deviation) {
    void* memory = nullptr;
    WS_CHECK(cudaMalloc(&memory, size * 2) == cudaSuccess) << size * 2 << " bytes";
    values_ = static_cast<__nv_bfloat16*>(memory);
    WS_CHECK(LaunchRandomNormals(values_, size, seed, deviation, nullptr) == cudaSuccess);
  }
  ~Normals() { cudaFree(values_); }
  Normals(const Normals&) = delete;
  Normals& operator=(const Normals&) = delete;

  __nv_bfloat16* get() const { return values_; }

 private:
  __nv_bfloat16* values_ = nullptr;
};

// A graph of launches one after the other, so that the host's part is not measured.
class LaunchGraph {
 public:
  // `launch` gets its index.
  explicit LaunchGraph(const std::function<void(int, cudaStream_t)>& launch) {
    cudaStream_t stream;
    cudaGraph_t graph;
    WS_CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    WS_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    for (int i = 0; i < kLaunches; ++i) launch(i, stream);
    WS_CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    WS_CHECK(cudaGraphInstantiate(&runnable_, graph, 0) == cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    WS_CHECK(cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess);
  }
  ~LaunchGraph() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaGraphExecDestroy(runnable_);
  }
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  // `busy` is filled first, so that the host has launched the graph when its time begins.
  void Run(const DeviceVector<char>& busy, bool counts) {
    float milliseconds = 0;
    WS_CHECK(cudaMemsetAsync(busy.get(), 0, busy.size(), nullptr) == cudaSuccess);
    WS_CHECK(cudaEventRecord(begin_) == cudaSuccess && cudaGraphLaunch(runnable_, nullptr) == cudaSuccess);
    WS_CHECK(cudaEventRecord(end_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess);
    WS_CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess);
    if (counts) seconds_.push_back(milliseconds * 1e-3 / kLaunches);
  }

  // Of one launch.
  double MedianSeconds() {
    std::nth_element(seconds_.begin(), seconds_.begin() + seconds_.size() / 2, seconds_.end());
    return seconds_[seconds_.size() / 2];
  }

 private:
  static constexpr int kLaunches = 8;
  cudaGraphExec_t runnable_;
  cudaEvent_t begin_, end_;
  std::vector<double> seconds_;
};

// By turns: large products lower the clock of those that follow.
void RunByTurns(const std::vector<LaunchGraph*>& graphs, const DeviceVector<char>& busy) {
  constexpr int kWarmUps = 2, kRuns = 7;
  for (int run = 0; run < kWarmUps + kRuns; ++run) {
    for (LaunchGraph* const graph : graphs) graph->Run(busy, run >= kWarmUps);
  }
}

struct NamedLayer {
  const char* name;
  LinearShape shape;
};

const std::vector<NamedLayer>& LayersOf8B() {
  static const std::vector<NamedLayer> layers = {{"query, key, value", {6144, 4096}},
                                                 {"output", {4096, 4096, false, true}},
                                                 {"gate, up", {24576, 4096}},
                                                 {"down", {4096, 12288, false, true}}};
  return layers;
}

TEST_CASE("the rates of a decoder layer's four products, beside cuBLASLt's") {
  constexpr double kPeak = 989.4e12;  // of an H100 or H200 SXM, dense bfloat16, by its data sheet
  constexpr int64_t kRowsMax = 4096, kWeights = 256 << 20;  // bytes, more than the device caches
  const Library library;
  const DeviceVector<char> evicted(std::vector<char>(128 << 20));
  const std::vector<int64_t> counts = {1, 64, 96, 128, 192, 256, 400, 1024, 2048, kRowsMax};
  const Normals x(kRowsMax * 12288, 1, 1.0f), residual(kRowsMax * 4096, 2, 1.0f),
      y(kRowsMax * 24576, 3, 1.0f);
  std::vector<double> ours_of_layer(counts.size()), early_of_layer(counts.size()),
      theirs_of_layer(counts.size());
  for (const NamedLayer& layer : LayersOf8B()) {
    const LinearShape& shape = layer.shape;
    const int64_t elements = shape.columns * shape.depth;
    std::vector<std::unique_ptr<Normals>> weights;
    for (int64_t i = 0; i < std::max<int64_t>(2, kWeights / (elements * 2)); ++i) {
      weights.push_back(std::make_unique<Normals>(elements, 4 + i, 0.02f));
    }
    const auto operands = [&](size_t i) {
      return LinearOperands{x.get(), weights[i % weights.size()]->get(), nullptr,
                            shape.has_residual ? residual.get() : nullptr, y.get()};
    };
    LinearPlans plans(library.handle, library.workspace(), counts, DepthSplit::kAllowed);
    REQUIRE(plans.Prepare(shape, operands(0), {evicted.get(), evicted.size()}, nullptr) ==
            CUBLAS_STATUS_SUCCESS);
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t rows = counts[i];
      const auto ours_by = [&](KernelStart start) {
        return [&, start](int launch, cudaStream_t stream) {
          WS_CHECK(LaunchStreamedLinear(shape, rows, operands(launch), stream,
                                        launch == 0 ? KernelStart::kAfterFormer : start) == cudaSuccess);
        };
      };
      LaunchGraph after(ours_by(KernelStart::kAfterFormer)), beside(ours_by(KernelStart::kBesideFormer));
      LaunchGraph library_graph([&](int launch, cudaStream_t stream) {
        WS_CHECK(plans.Launch(shape, rows, operands(launch), stream) == CUBLAS_STATUS_SUCCESS);
      });
      RunByTurns({&library_graph, &after, &beside}, evicted);
      const double ours = after.MedianSeconds(), theirs = library_graph.MedianSeconds();
      const double flops = static_cast<double>(2 * rows * elements);
      std::printf(
          "%s, %lld rows: %.1f us, beside the former %.1f, %.0f TFLOP/s, %.0f %% of the peak; cuBLASLt %.1f "
          "us, "
          "ratio %.3f\n",
          layer.name, static_cast<long long>(rows), ours * 1e6, beside.MedianSeconds() * 1e6,
          flops / ours * 1e-12, 100 * flops / ours / kPeak, theirs * 1e6, theirs / ours);
      ours_of_layer[i] += ours;
      early_of_layer[i] += beside.MedianSeconds();
      theirs_of_layer[i] += theirs;
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    const double ours = ours_of_layer[i], early = early_of_layer[i], theirs = theirs_of_layer[i];
    std::printf(
        "all four, %lld rows: %.1f us, beside the former %.1f; cuBLASLt %.1f us, ratios %.3f and %.3f\n",
        static_cast<long long>(counts[i]), ours * 1e6, early * 1e6, theirs * 1e6, theirs / ours,
        theirs / early);
  }
}

}  // namespace
}  // namespace warpsmith
