#include "core/kernels/streamed_linear_cuda.h"

#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::vector<LinearShape>& OddShapes() {
  static const std::vector<LinearShape> shapes = {
      {8, 8}, {40, 72, true}, {136, 1000, false, true}, {256, 4096, true, true}, {6144, 1032}, {64, 16384}};
  return shapes;
}

TEST_CASE(
    "a streamed layer equals the reference for every number of rows, with bias and residual or without") {
  for (const LinearShape& shape : OddShapes()) {
    const Layer layer(shape, 300);
    for (const int64_t rows : {1, 2, 7, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 300}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      REQUIRE(LaunchStreamedLinear(shape, rows, layer.operands(shape), nullptr) == cudaSuccess);
      std::vector<double> expected(rows * shape.columns);
      LinearReference(shape, rows, layer.x.data(), layer.weight.data(), layer.bias.data(),
                      layer.residual.data(), expected.data());
      CHECK(LargestLinearError(FirstRows(layer.y.Read(), std::ssize(expected)), expected, shape.depth) <=
            1.0);
    }
  }
}

TEST_CASE("a streamed row has the same bits at every number of rows") {
  for (const LinearShape& shape :
       {LinearShape{1024, 4096}, LinearShape{1024, 3072}, LinearShape{4096, 4096, false, true},
        LinearShape{6144, 4096, true, true}, LinearShape{24576, 1024}}) {
    const Layer layer(shape, 600);
    const auto run = [&](int64_t rows, NextStart next = NextStart::kAfterLoads) {
      REQUIRE(LaunchStreamedLinear(shape, rows, layer.operands(shape), nullptr, KernelStart::kAfterFormer,
                                   next) == cudaSuccess);
      return FirstRows(layer.y.Read(), rows * shape.columns);
    };
    const std::vector<float> all = run(600);
    for (const int64_t rows : {1, 2, 3, 8, 9, 16, 31, 63, 64, 65, 128, 255, 256, 257, 512}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      CHECK(run(rows) == FirstRows(all, rows * shape.columns));
      if (rows <= 64) CHECK(run(rows, NextStart::kAtOnce) == FirstRows(all, rows * shape.columns));
    }
  }
}

TEST_CASE("a streamed product with SwiGLU has the bits of both one after the other") {
  for (const LinearShape& shape :
       {LinearShape{6144, 1024}, LinearShape{64, 72}, LinearShape{1056, 4096}, LinearShape{24576, 512}}) {
    const Layer layer(shape, 300);
    const Bfloat16Array expected(std::vector<float>(300 * shape.columns / 2));
    const Bfloat16Array found(std::vector<float>(300 * shape.columns / 2));
    for (const int64_t rows : {1, 2, 7, 8, 9, 16, 17, 33, 64, 65, 300}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      LinearOperands operands = layer.operands(shape);
      REQUIRE(LaunchStreamedLinear(shape, rows, operands, nullptr) == cudaSuccess);
      REQUIRE(LaunchSwiGlu({rows, shape.columns / 2, layer.y.get(), expected.get()}, nullptr) == cudaSuccess);
      operands.y = found.get();
      REQUIRE(LaunchStreamedSwiGlu(shape, rows, operands, nullptr) == cudaSuccess);
      const int64_t size = rows * shape.columns / 2;
      CHECK(FirstRows(found.Read(), size) == FirstRows(expected.Read(), size));
    }
  }
}

// The bits of x after norms and products by turns, each of which needs what the one before wrote.
std::vector<float> AfterLayers(const Layer& layer, const LinearShape& shape, int64_t rows, KernelStart start,
                               NextStart next = NextStart::kAfterLoads) {
  const Bfloat16Array x(layer.x), weight(std::vector<float>(shape.depth, 0.03f)),
      normed(std::vector<float>(rows * shape.depth));
  for (int i = 0; i < 40; ++i) {
    const KernelStart used = i == 0 ? KernelStart::kAfterFormer : start;
    REQUIRE(LaunchResidualNorm({rows, shape.depth, 1e-6f, x.get(), nullptr, weight.get(), normed.get()},
                               nullptr, used) == cudaSuccess);
    REQUIRE(LaunchStreamedLinear(shape, rows,
                                 {normed.get(), layer.weight_device.get(), nullptr, x.get(), x.get()},
                                 nullptr, start, next) == cudaSuccess);
  }
  return x.Read();
}

TEST_CASE("kernels that start beside the former wait for what it writes") {
  for (const LinearShape& shape : {LinearShape{1024, 1024, false, true}, {4096, 4096, false, true}}) {
    for (const int64_t rows : {1, 8, 40, 200}) {
      INFO(rows << " x " << shape.columns);
      const Layer layer(shape, rows);
      const std::vector<float> expected = AfterLayers(layer, shape, rows, KernelStart::kAfterFormer);
      CHECK(AfterLayers(layer, shape, rows, KernelStart::kBesideFormer) == expected);
      CHECK(AfterLayers(layer, shape, rows, KernelStart::kBesideFormer, NextStart::kAtOnce) == expected);
    }
  }
}

// Of layers of 0.6B, whose blocks have two parts of the depth in one ring of stages: copies that overtake others must
// not be taken for them.
TEST_CASE("products of weights from memory have the same bits in every one of many launches") {
  constexpr int64_t kRows = 64, kWeightBytes = 192 << 20;  // more than the device caches
  constexpr int kPasses = 300;
  for (const LinearShape& shape : {LinearShape{6144, 1024}, {1024, 3072, false, true}, {4096, 1024}}) {
    const bool gated = shape.columns == 6144;
    const int64_t elements = shape.columns * shape.depth, count = kWeightBytes / (2 * elements);
    const int64_t results = kRows * shape.columns / (gated ? 2 : 1);
    const Layer layer(shape, kRows);
    const DeviceVector<uint16_t> weights(std::vector<uint16_t>(count * elements)),
        y(std::vector<uint16_t>(count * results));
    const auto place = [](const DeviceVector<uint16_t>& of, int64_t at) {
      return reinterpret_cast<__nv_bfloat16*>(of.get()) + at;
    };
    REQUIRE(LaunchRandomNormals(place(weights, 0), count * elements, 5, 0.03f, nullptr) == cudaSuccess);
    const auto pass = [&] {
      for (int64_t i = 0; i < count; ++i) {
        LinearOperands operands = layer.operands(shape);
        operands.weight = place(weights, i * elements);
        operands.y = place(y, i * results);
        const KernelStart start = i == 0 ? KernelStart::kAfterFormer : KernelStart::kBesideFormer;
        REQUIRE((gated ? LaunchStreamedSwiGlu(shape, kRows, operands, nullptr, start, NextStart::kAfterLoads)
                       : LaunchStreamedLinear(shape, kRows, operands, nullptr, start)) == cudaSuccess);
      }
      return y.Read();
    };
    const std::vector<uint16_t> expected = pass();
    int num_wrong = 0;
    for (int i = 1; i < kPasses; ++i) num_wrong += pass() != expected;
    INFO(shape.columns << " x " << shape.depth);
    CHECK(num_wrong == 0);
  }
}

TEST_CASE("streamed logits come in float32") {
  const LinearShape shape{.columns = 1004, .depth = 256, .output = LinearOutput::kFloat32};
  const Layer layer(shape, 5);
  const DeviceArray logits(std::vector<float>(5 * 1004));
  LinearOperands operands = layer.operands(shape);
  operands.y = logits.get();
  REQUIRE(LaunchStreamedLinear(shape, 5, operands, nullptr) == cudaSuccess);
  std::vector<double> expected(5 * 1004);
  LinearReference(shape, 5, layer.x.data(), layer.weight.data(), nullptr, nullptr, expected.data());
  CHECK(LargestLinearError(logits.Read(), expected, shape.depth) <= 1.0);
}

TEST_CASE("a streamed layer refuses sizes that it cannot copy") {
  const LinearShape shape{8, 8};
  const Layer layer(shape, 1);
  const auto run = [&](const LinearShape& other, int64_t rows) {
    return LaunchStreamedLinear(other, rows, layer.operands(shape), nullptr);
  };
  CHECK(run(shape, 0) == cudaErrorInvalidValue);
  CHECK(run({8, 12}, 1) == cudaErrorInvalidValue);
  CHECK(run({12, 8}, 1) == cudaErrorInvalidValue);
  CHECK(run({0, 8}, 1) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
