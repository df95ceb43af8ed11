#include "core/kernels/linear_cuda.h"

#include <cmath>

#include "tests/gpu/device_rate.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "a layer equals the reference for every row count of its buckets, with bias and residual or without") {
  const Library library;
  for (const DepthSplit split : {DepthSplit::kNever, DepthSplit::kAllowed}) {
    LinearPlans plans(library.handle, library.workspace(), {1, 8, 70}, split);
    for (const LinearShape& shape :
         {LinearShape{8, 8}, LinearShape{40, 72, true}, LinearShape{136, 1000, false, true},
          LinearShape{256, 4096, true}, LinearShape{256, 4096, true, true}}) {
      const Layer layer(shape, 70);
      REQUIRE(plans.Prepare(shape, layer.operands(shape), {}, nullptr) == CUBLAS_STATUS_SUCCESS);
      for (const int64_t rows : {1, 2, 7, 8, 9, 63, 70}) {
        INFO(rows << " x " << shape.columns << " x " << shape.depth
                  << (split == DepthSplit::kNever ? ", whole sums" : ", sums may be cut"));
        REQUIRE(plans.Launch(shape, rows, layer.operands(shape), nullptr) == CUBLAS_STATUS_SUCCESS);
        std::vector<double> expected(rows * shape.columns);
        LinearReference(shape, rows, layer.x.data(), layer.weight.data(), layer.bias.data(),
                        layer.residual.data(), expected.data());
        const std::vector<float> found = FirstRows(layer.y.Read(), std::ssize(expected));
        CHECK(LargestLinearError(found, expected, shape.depth) <= 1.0);
      }
    }
  }
}

TEST_CASE("with one bucket and no split a row has the same bits at every row count") {
  const Library library;
  LinearPlans plans(library.handle, library.workspace(), {256}, DepthSplit::kNever);
  for (const LinearShape& shape : {LinearShape{1024, 4096}, LinearShape{6144, 4096, true, true}}) {
    const Layer layer(shape, 256);
    REQUIRE(plans.Prepare(shape, layer.operands(shape), {}, nullptr) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(plans.Launch(shape, 256, layer.operands(shape), nullptr) == CUBLAS_STATUS_SUCCESS);
    const std::vector<float> all = layer.y.Read();
    for (const int64_t rows : {1, 2, 3, 16, 63, 64, 65, 128, 255}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      REQUIRE(plans.Launch(shape, rows, layer.operands(shape), nullptr) == CUBLAS_STATUS_SUCCESS);
      CHECK(FirstRows(layer.y.Read(), rows * shape.columns) == FirstRows(all, rows * shape.columns));
    }
  }
}

TEST_CASE("logits come in float32") {
  const Library library;
  LinearPlans plans(library.handle, library.workspace(), {5}, DepthSplit::kNever);
  const LinearShape shape{.columns = 1000, .depth = 256, .output = LinearOutput::kFloat32};
  const Layer layer(shape, 5);
  const DeviceArray logits(std::vector<float>(5 * 1000));
  LinearOperands operands = layer.operands(shape);
  operands.y = logits.get();
  REQUIRE(plans.Prepare(shape, operands, {}, nullptr) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(plans.Launch(shape, 5, operands, nullptr) == CUBLAS_STATUS_SUCCESS);
  std::vector<double> expected(5 * 1000);
  LinearReference(shape, 5, layer.x.data(), layer.weight.data(), nullptr, nullptr, expected.data());
  const std::vector<float> found = logits.Read();
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) largest = std::max(largest, std::abs(found[i] - expected[i]));
  CHECK(largest < SumError(256));
}

TEST_CASE("what is not prepared, too many rows, and a bias on float32 are refused") {
  const Library library;
  LinearPlans plans(library.handle, library.workspace(), {4}, DepthSplit::kNever);
  const LinearShape shape{8, 8};
  const Layer layer(shape, 4);
  CHECK(plans.Launch(shape, 1, layer.operands(shape), nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  REQUIRE(plans.Prepare(shape, layer.operands(shape), {}, nullptr) == CUBLAS_STATUS_SUCCESS);
  CHECK(plans.MeasuredSeconds(shape, 0) > 0);
  CHECK(plans.Launch(shape, 5, layer.operands(shape), nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(plans.Launch(shape, 0, layer.operands(shape), nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  const LinearShape logits{8, 8, true, false, LinearOutput::kFloat32};
  CHECK(plans.Prepare(logits, layer.operands(logits), {}, nullptr) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("the rates of the layers of a model of 8B at 1 and 64 rows, weights from memory") {
  const Library library;
  const DeviceVector<char> evicted(std::vector<char>(128 << 20));
  const std::vector<int64_t> buckets = {1, 64};
  for (const DepthSplit split : {DepthSplit::kNever, DepthSplit::kAllowed}) {
    LinearPlans plans(library.handle, library.workspace(), buckets, split);
    for (const LinearShape& shape : {LinearShape{6144, 4096}, LinearShape{4096, 4096, false, true},
                                     LinearShape{24576, 4096}, LinearShape{4096, 12288, false, true}}) {
      const Layer layer(shape, 64);
      REQUIRE(plans.Prepare(shape, layer.operands(shape), {evicted.get(), evicted.size()}, nullptr) ==
              CUBLAS_STATUS_SUCCESS);
      for (int bucket = 0; bucket < std::ssize(buckets); ++bucket) {
        const int64_t rows = buckets[bucket];
        const auto bytes = static_cast<double>(2 * (shape.columns * shape.depth + rows * shape.depth +
                                                    (1 + shape.has_residual) * rows * shape.columns));
        const double seconds = plans.MeasuredSeconds(shape, bucket);
        std::printf("linear %lld x %lld x %lld, %s: %.1f us, %.0f GB/s; a copy of 1 GiB %.0f GB/s\n",
                    static_cast<long long>(rows), static_cast<long long>(shape.columns),
                    static_cast<long long>(shape.depth),
                    split == DepthSplit::kNever ? "whole sums" : "split sums", seconds * 1e6,
                    bytes / seconds * 1e-9, 0x1p30 / CopySeconds(1 << 30) * 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace warpsmith
