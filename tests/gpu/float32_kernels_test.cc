// The small kernels of a step in float32, each against its reference on the CPU: norms and SwiGLU in
// step_kernels_test.cc. Their forms in bfloat16, and what they refuse, are tested by name.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/random_normals_cuda.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
TEST_CASE("gathered rows in float32 are those of the reference") {
  constexpr int64_t kNumTokens = 100, kRows = 300;
  for (const int64_t size : {8, 136, 4096}) {
    const std::vector<float> embedding = RandomFloats(kNumTokens * size, 1);
    std::vector<int32_t> token_ids(kRows);
    for (int64_t row = 0; row < kRows; ++row)
      token_ids[row] = static_cast<int32_t>(row * 31 % (kNumTokens + 1));
    std::vector<float> expected(kRows * size);
    EmbeddingGatherReference(
        {kRows, size, kNumTokens, embedding.data(), token_ids.data(), nullptr, nullptr, expected.data()});
    const DeviceArray table(embedding), x(std::vector<float>(kRows * size));
    const DeviceVector<int32_t> ids(token_ids);
    REQUIRE(LaunchEmbeddingGather<float>(
                {kRows, size, kNumTokens, table.get(), ids.get(), nullptr, nullptr, x.get()}, nullptr) ==
            cudaSuccess);
    const std::vector<float> found = x.Read();
    int64_t different = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      different += std::isnan(expected[i]) ? !std::isnan(found[i]) : found[i] != expected[i];
    }
    CHECK(different == 0);
  }
}

TEST_CASE("attention's inputs in float32 equal the CPU's, biased and normed or not") {
  constexpr int64_t kRows = 37, kPositions = 90;
  for (const int64_t head_dim : {64, 128, 256}) {
    for (const bool plain : {false, true}) {
      INFO("head_dim " << head_dim << (plain ? ", plain" : ", biased and normed"));
      constexpr int64_t kHeads = 2, kGroup = 5;
      const int64_t row_size = kHeads * (kGroup + 2) * head_dim, entries = 2 * kRows * kHeads * head_dim;
      const std::vector<float> qkv = RandomFloats(kRows * row_size, 1), bias = RandomFloats(row_size, 2),
                               query_norm = RandomFloats(head_dim, 3), key_norm = RandomFloats(head_dim, 4);
      std::vector<float> cosines, sines, queries(kRows * kHeads * kGroup * head_dim),
          keys = RandomFloats(entries, 5), values = RandomFloats(entries, 6);
      for (int64_t i = 0; i < kPositions * head_dim / 2; ++i) {
        cosines.push_back(std::cos(0.37f * static_cast<float>(i)));
        sines.push_back(std::sin(0.37f * static_cast<float>(i)));
      }
      std::vector<int32_t> positions, places;
      for (int32_t row = 0; row < kRows; ++row) {
        positions.push_back(row * 31 % kPositions);
        places.push_back(static_cast<int32_t>(2 * (kRows - 1 - row) + row % 2));
      }
      const DeviceArray qkv_device(qkv), bias_device(bias), query_norm_device(query_norm),
          key_norm_device(key_norm), cosines_device(cosines), sines_device(sines), queries_device(queries),
          keys_device(keys), values_device(values);
      const DeviceVector<int32_t> positions_device(positions), places_device(places);
      REQUIRE(
          LaunchAttentionInputs<float>(
              {kRows, kHeads, kGroup, head_dim, 1e-6f, qkv_device.get(), plain ? nullptr : bias_device.get(),
               plain ? nullptr : query_norm_device.get(), plain ? nullptr : key_norm_device.get(),
               cosines_device.get(), sines_device.get(), positions_device.get(), places_device.get(),
               queries_device.get(), keys_device.get(), values_device.get()},
              nullptr) == cudaSuccess);
      AttentionInputsReference(
          {kRows, kHeads, kGroup, head_dim, 1e-6f, qkv.data(), plain ? nullptr : bias.data(),
           plain ? nullptr : query_norm.data(), plain ? nullptr : key_norm.data(), cosines.data(),
           sines.data(), positions.data(), places.data(), queries.data(), keys.data(), values.data()},
          DeviceDtype::kFloat32);
      CHECK(LargestError<float>(queries_device.Read(), queries) <= 1.0);
      CHECK(LargestError<float>(keys_device.Read(), keys) <= 1.0);
      CHECK(values_device.Read() == values);
    }
  }
}

TEST_CASE(
    "products in float32 equal the reference, with a residual or without, and keep what TF32 would cut off") {
  const Library library;
  for (const DepthSplit split : {DepthSplit::kNever, DepthSplit::kAllowed}) {
    LinearPlansOf<float> plans(library.handle, library.workspace(), {1, 8, 70}, split);
    for (const bool has_residual : {false, true}) {
      for (const auto& [columns, depth] : {std::pair{8, 8}, {136, 1000}, {256, 4096}}) {
        const LinearShape shape{.columns = columns,
                                .depth = depth,
                                .has_residual = has_residual,
                                .output = LinearOutput::kFloat32};
        constexpr int64_t kRows = 70;
        const std::vector<float> x = RandomFloats(kRows * shape.depth, 1),
                                 weight = RandomFloats(shape.columns * shape.depth, 2),
                                 residual = RandomFloats(kRows * shape.columns, 4);
        const DeviceArray x_device(x), weight_device(weight), residual_device(residual),
            y(std::vector<float>(kRows * shape.columns));
        const LinearOperandsOf<float> operands{.x = x_device.get(),
                                               .weight = weight_device.get(),
                                               .residual = has_residual ? residual_device.get() : nullptr,
                                               .y = y.get()};
        REQUIRE(plans.Prepare(shape, operands, {}, nullptr) == CUBLAS_STATUS_SUCCESS);
        for (const int64_t rows : {1, 2, 8, 9, 70}) {
          INFO(rows << " x " << columns << " x " << depth);
          REQUIRE(plans.Launch(shape, rows, operands, nullptr) == CUBLAS_STATUS_SUCCESS);
          std::vector<double> expected(rows * shape.columns);
          LinearReference(shape, rows, x.data(), weight.data(), nullptr, residual.data(), expected.data());
          const std::vector<float> found = FirstRows(y.Read(), std::ssize(expected));
          double largest = 0;
          for (size_t i = 0; i < found.size(); ++i)
            largest = std::max(largest, std::abs(found[i] - expected[i]));
          // Eight units of what float32 cuts off a sum of this size at each of its steps. TF32 would be off by some 30
          // times as much, for it cuts 2^-12 off every operand.
          CHECK(largest <= 0x1p-22 * std::sqrt(static_cast<double>(depth)) * 32 + 1e-6);
        }
      }
    }
  }
  LinearPlansOf<float> plans(library.handle, library.workspace(), {4}, DepthSplit::kNever);
  const DeviceArray any(std::vector<float>(64));
  CHECK(plans.Prepare({8, 8}, {any.get(), any.get(), nullptr, nullptr, any.get()}, {}, nullptr) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("products in float32 that are chosen without measuring have the same bits whoever chose them") {
  const Library library;
  const LinearShape shape{.columns = 1024, .depth = 3072, .output = LinearOutput::kFloat32};
  constexpr int64_t kRows = 40;
  const DeviceArray x(RandomFloats(kRows * shape.depth, 1)),
      weight(RandomFloats(shape.columns * shape.depth, 2));
  std::vector<std::vector<float>> found;
  for (int run = 0; run < 2; ++run) {
    LinearPlansOf<float> plans(library.handle, library.workspace(), {1, 8, kRows}, DepthSplit::kAllowed,
                               {.proposals_max = 4, .warm_ups = 0, .runs = 0});
    for (const int64_t rows : {1, 5, 40}) {
      const DeviceArray y(std::vector<float>(static_cast<size_t>(kRows * shape.columns)));
      const LinearOperandsOf<float> operands{.x = x.get(), .weight = weight.get(), .y = y.get()};
      REQUIRE(plans.Prepare(shape, operands, {}, nullptr) == CUBLAS_STATUS_SUCCESS);
      REQUIRE(plans.Launch(shape, rows, operands, nullptr) == CUBLAS_STATUS_SUCCESS);
      found.push_back(y.Read());
    }
  }
  for (int i = 0; i < 3; ++i) CHECK(found[i] == found[i + 3]);
}

TEST_CASE("the first float32 that is not finite is found") {
  constexpr unsigned long long kNone = std::numeric_limits<unsigned long long>::max();
  for (const int64_t size : {4, 64, 20000}) {
    for (const int64_t at : {int64_t{-1}, int64_t{0}, int64_t{3}, size / 2 + 1, size - 1}) {
      std::vector<float> values = RandomFloats(size, 1);
      values[size / 2] = std::numeric_limits<float>::max();
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        if (at >= 0) values[at] = bad;
        const DeviceArray array(values);
        const DeviceVector<unsigned long long> first(std::vector<unsigned long long>{kNone});
        REQUIRE(LaunchFirstNotFinite(array.get(), size, first.get(), nullptr) == cudaSuccess);
        INFO(bad << " at " << at << " of " << size);
        CHECK(first.Read()[0] == (at < 0 ? kNone : static_cast<unsigned long long>(at)));
      }
    }
  }
  CHECK(LaunchFirstNotFinite<float>(nullptr, 2, nullptr, nullptr) == cudaErrorInvalidValue);
}

TEST_CASE("random values in float32 round to those in bfloat16, but for zeros") {
  constexpr int64_t kSize = 100'000;
  const std::vector<float> zeros(kSize);
  const DeviceArray values(zeros);
  const Bfloat16Array rounded(zeros);
  REQUIRE(LaunchRandomNormals(values.get(), kSize, 7, 0.02f, nullptr) == cudaSuccess);
  REQUIRE(LaunchRandomNormals(rounded.get(), kSize, 7, 0.02f, nullptr) == cudaSuccess);
  const std::vector<float> found = values.Read(), halves = rounded.Read();
  int64_t different = 0, none = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    different += RoundToBfloat16(found[i]) != halves[i];
    none += found[i] == 0;
  }
  CHECK(different == 0);
  CHECK(none == 0);
}

}  // namespace warpsmith
