// The kernels of a step in float16, each against its reference on the CPU: norms and SwiGLU in step_kernels_test.cc.
// Their forms in bfloat16, which are the same templates, and what they refuse, are tested by name.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "tests/gpu/attention_batch.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Array = StoredArray<__half>;
using HalfLayer = LayerOf<__half>;

std::vector<float> Random(int64_t size, uint64_t seed) { return RandomStored<__half>(size, seed); }

// As in bfloat16: half a step of float16 for the output, and half a step for each weight.
double LargestAttentionError(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double error =
        std::abs(double{found[i]} - expected[i]) / (std::abs(expected[i]) * 0x1p-10 + 0x1p-12);
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

std::vector<float> Attend(const AttentionBatch& batch) {
  const PagedAttentionBounds bounds = batch.Bounds();
  const AttentionShape& shape = batch.shape;
  const DeviceVector<int32_t> row_indptr(batch.row_indptr), page_indptr(batch.page_indptr),
      page_indices(batch.page_indices), positions(batch.positions);
  const Array queries(batch.queries), keys(batch.keys), values(batch.values), output(batch.output);
  const size_t bytes = PagedAttentionWorkspaceBytes(std::ssize(batch.positions), shape.num_kv_heads,
                                                    shape.group_size, shape.head_dim, bounds);
  const DeviceVector<char> workspace(std::vector<char>(bytes + 1, '\xff'));
  REQUIRE(LaunchPagedAttention(
              batch.Attention<__half>(row_indptr.get(), page_indptr.get(), page_indices.get(),
                                      positions.get(), queries.get(), keys.get(), values.get(), output.get()),
              bounds, workspace.get(), nullptr) == cudaSuccess);
  return output.Read();
}

}  // namespace

TEST_CASE("gathered rows in float16 are those of the embedding, and NaN without a token") {
  constexpr int64_t kNumTokens = 100, kRows = 300, kSize = 136;
  const std::vector<float> embedding = Random(kNumTokens * kSize, 1);
  std::vector<int32_t> token_ids(kRows);
  for (int64_t row = 0; row < kRows; ++row)
    token_ids[row] = static_cast<int32_t>(row * 31 % (kNumTokens + 1));
  const Array table(embedding), x(std::vector<float>(kRows * kSize));
  const DeviceVector<int32_t> ids(token_ids);
  REQUIRE(LaunchEmbeddingGather<__half>(
              {kRows, kSize, kNumTokens, table.get(), ids.get(), nullptr, nullptr, x.get()}, nullptr) ==
          cudaSuccess);
  const std::vector<float> found = x.Read();
  int64_t different = 0;
  for (int64_t i = 0; i < kRows * kSize; ++i) {
    const int64_t token = token_ids[i / kSize];
    different +=
        token == kNumTokens ? !std::isnan(found[i]) : found[i] != embedding[token * kSize + i % kSize];
  }
  CHECK(different == 0);
}

TEST_CASE("attention's inputs in float16 equal the CPU's") {
  constexpr int64_t kRows = 37, kPositions = 90, kHeads = 2, kGroup = 5;
  for (const int64_t head_dim : {64, 128, 256}) {
    INFO("head_dim " << head_dim);
    const int64_t row_size = kHeads * (kGroup + 2) * head_dim, entries = kRows * kHeads * head_dim;
    const std::vector<float> qkv = Random(kRows * row_size, 1), bias = Random(row_size, 2),
                             query_norm = Random(head_dim, 3), key_norm = Random(head_dim, 4);
    std::vector<float> cosines, sines, queries(kRows * kHeads * kGroup * head_dim), keys(entries),
        values(entries);
    for (int64_t i = 0; i < kPositions * head_dim / 2; ++i) {
      cosines.push_back(std::cos(0.37f * static_cast<float>(i)));
      sines.push_back(std::sin(0.37f * static_cast<float>(i)));
    }
    std::vector<int32_t> positions, places;
    for (int32_t row = 0; row < kRows; ++row) {
      positions.push_back(row * 31 % kPositions);
      places.push_back(static_cast<int32_t>(kRows - 1 - row));
    }
    const Array qkv_device(qkv), bias_device(bias), query_norm_device(query_norm), key_norm_device(key_norm),
        queries_device(queries), keys_device(keys), values_device(values);
    const DeviceArray cosines_device(cosines), sines_device(sines);
    const DeviceVector<int32_t> positions_device(positions), places_device(places);
    REQUIRE(LaunchAttentionInputs<__half>(
                {kRows, kHeads, kGroup, head_dim, 1e-6f, qkv_device.get(), bias_device.get(),
                 query_norm_device.get(), key_norm_device.get(), cosines_device.get(), sines_device.get(),
                 positions_device.get(), places_device.get(), queries_device.get(), keys_device.get(),
                 values_device.get()},
                nullptr) == cudaSuccess);
    AttentionInputsReference({kRows, kHeads, kGroup, head_dim, 1e-6f, qkv.data(), bias.data(),
                              query_norm.data(), key_norm.data(), cosines.data(), sines.data(),
                              positions.data(), places.data(), queries.data(), keys.data(), values.data()},
                             DeviceDtype::kFloat16);
    CHECK(LargestError<__half>(queries_device.Read(), queries) <= 1.0);
    CHECK(LargestError<__half>(keys_device.Read(), keys) <= 1.0);
    CHECK(values_device.Read() == values);
  }
}

TEST_CASE(
    "products in float16 equal the reference for every number of rows, with bias and residual or without") {
  for (const LinearShape& shape :
       {LinearShape{8, 8}, LinearShape{40, 72, true}, LinearShape{136, 1000, false, true},
        LinearShape{256, 4096, true, true}, LinearShape{6144, 1032}, LinearShape{64, 16384}}) {
    const HalfLayer layer(shape, 300);
    for (const int64_t rows : {1, 8, 9, 17, 33, 64, 65, 129, 300}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      REQUIRE(LaunchStreamedLinear(shape, rows, layer.operands(shape), nullptr) == cudaSuccess);
      std::vector<double> expected(rows * shape.columns);
      LinearReference(shape, rows, layer.x.data(), layer.weight.data(), layer.bias.data(),
                      layer.residual.data(), expected.data());
      CHECK(LargestLinearError<__half>(FirstRows(layer.y.Read(), std::ssize(expected)), expected,
                                       shape.depth) <= 1.0);
    }
  }
}

TEST_CASE(
    "a row of a product in float16 has the same bits at every number of rows, with SwiGLU or before it") {
  for (const LinearShape& shape :
       {LinearShape{1024, 4096}, LinearShape{1056, 1024}, LinearShape{24576, 512}}) {
    const HalfLayer layer(shape, 300);
    const Array expected(std::vector<float>(300 * shape.columns / 2)),
        found(std::vector<float>(300 * shape.columns / 2));
    LinearOperandsOf<__half> operands = layer.operands(shape);
    REQUIRE(LaunchStreamedLinear(shape, 300, operands, nullptr) == cudaSuccess);
    REQUIRE(LaunchSwiGlu<__half>({300, shape.columns / 2, layer.y.get(), expected.get()}, nullptr) ==
            cudaSuccess);
    const std::vector<float> all = layer.y.Read(), gated = expected.Read();
    for (const int64_t rows : {1, 7, 8, 16, 31, 64, 65, 256, 300}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      operands.y = layer.y.get();
      REQUIRE(LaunchStreamedLinear(shape, rows, operands, nullptr) == cudaSuccess);
      CHECK(FirstRows(layer.y.Read(), rows * shape.columns) == FirstRows(all, rows * shape.columns));
      operands.y = found.get();
      REQUIRE(LaunchStreamedSwiGlu(shape, rows, operands, nullptr) == cudaSuccess);
      const int64_t size = rows * shape.columns / 2;
      CHECK(FirstRows(found.Read(), size) == FirstRows(gated, size));
    }
  }
}

TEST_CASE("logits of float16 come in float32, of few rows and of many") {
  const LinearShape shape{.columns = 1004, .depth = 256, .output = LinearOutput::kFloat32};
  for (const int64_t rows : {5, 100}) {
    const HalfLayer layer(shape, rows);
    const DeviceArray logits(std::vector<float>(rows * 1004));
    LinearOperandsOf<__half> operands = layer.operands(shape);
    operands.y = logits.get();
    REQUIRE(LaunchStreamedLinear(shape, rows, operands, nullptr) == cudaSuccess);
    std::vector<double> expected(rows * 1004);
    LinearReference(shape, rows, layer.x.data(), layer.weight.data(), nullptr, nullptr, expected.data());
    const std::vector<float> found = logits.Read();
    double largest = 0;
    for (size_t i = 0; i < found.size(); ++i) largest = std::max(largest, std::abs(found[i] - expected[i]));
    CHECK(largest <= SumError(shape.depth) * 4);
  }
}

TEST_CASE("products in float16 by cuBLASLt equal the reference") {
  const Library library;
  LinearPlansOf<__half> plans(library.handle, library.workspace(), {1, 8, 70}, DepthSplit::kAllowed);
  for (const LinearShape& shape : {LinearShape{256, 4096, false, true}, LinearShape{136, 1000, true}}) {
    const HalfLayer layer(shape, 70);
    REQUIRE(plans.Prepare(shape, layer.operands(shape), {}, nullptr) == CUBLAS_STATUS_SUCCESS);
    for (const int64_t rows : {1, 8, 9, 70}) {
      INFO(rows << " x " << shape.columns << " x " << shape.depth);
      REQUIRE(plans.Launch(shape, rows, layer.operands(shape), nullptr) == CUBLAS_STATUS_SUCCESS);
      std::vector<double> expected(rows * shape.columns);
      LinearReference(shape, rows, layer.x.data(), layer.weight.data(), layer.bias.data(),
                      layer.residual.data(), expected.data());
      CHECK(LargestLinearError<__half>(FirstRows(layer.y.Read(), std::ssize(expected)), expected,
                                       shape.depth) <= 1.0);
    }
  }
}

TEST_CASE("attention in float16 equals the CPU's, of decoding rows, few and many, and of chunks") {
  std::vector<AttentionQuery> decoding, chunks = {{0, 1, 1}, {1, 70, 70}, {2, 16, 300}, {3, 129, 530}};
  for (const int context : {1, 17, 32, 33, 255, 256, 257, 513, 1100}) {
    decoding.push_back({static_cast<int>(decoding.size()), 1, context});
  }
  for (const AttentionShape& shape :
       {AttentionShape{1, 1, 64, 16}, {1, 16, 128, 48}, {8, 4, 128, 256}, {3, 5, 64, 128}}) {
    INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim);
    for (const std::vector<AttentionQuery>& queries : {decoding, chunks}) {
      AttentionBatch batch(shape, queries, DeviceDtype::kFloat16);
      CHECK(LargestAttentionError(Attend(batch), batch.OnHost()) <= 1.0);
    }
  }
}

TEST_CASE("a row of attention in float16 has the same bits decoded and in chunks of any cut") {
  constexpr int kContext = 600;
  const AttentionShape shape = {2, 4, 128, 16};
  const std::vector<float> whole = Attend({shape, {{0, kContext, kContext}}, DeviceDtype::kFloat16});
  const std::vector<float> last(whole.end() - shape.row_size(), whole.end());
  CHECK(Attend({shape, {{0, 1, kContext}}, DeviceDtype::kFloat16}) == last);
  const std::vector<float> cut =
      Attend({shape, {{7, 30, 90}, {0, 250, 250}, {0, 350, kContext}}, DeviceDtype::kFloat16});
  CHECK(std::equal(whole.end() - 350 * shape.row_size(), whole.end(), cut.end() - 350 * shape.row_size()));
}

TEST_CASE("the first float16 that is not finite is found, and the largest is finite") {
  constexpr unsigned long long kNone = std::numeric_limits<unsigned long long>::max();
  for (const int64_t size : {8, 64, 20000}) {
    for (const int64_t at : {int64_t{-1}, int64_t{0}, int64_t{3}, size / 2 + 1, size - 1}) {
      std::vector<float> values = Random(size, 1);
      values[size / 2] = 65504;
      for (const float bad : {INFINITY, -INFINITY, NAN, 65520.0f}) {
        if (at >= 0) values[at] = bad;
        const Array array(values);
        const DeviceVector<unsigned long long> first(std::vector<unsigned long long>{kNone});
        REQUIRE(LaunchFirstNotFinite(array.get(), size, first.get(), nullptr) == cudaSuccess);
        INFO(bad << " at " << at << " of " << size);
        CHECK(first.Read()[0] == (at < 0 ? kNone : static_cast<unsigned long long>(at)));
      }
    }
  }
}

TEST_CASE("random values in float32 round to those in float16, but for zeros") {
  constexpr int64_t kSize = 100'000;
  const DeviceArray values(std::vector<float>(static_cast<size_t>(kSize)));
  const Array rounded(std::vector<float>(static_cast<size_t>(kSize)));
  REQUIRE(LaunchRandomNormals(values.get(), kSize, 7, 0.02f, nullptr) == cudaSuccess);
  REQUIRE(LaunchRandomNormals(rounded.get(), kSize, 7, 0.02f, nullptr) == cudaSuccess);
  const std::vector<float> found = values.Read(), halves = rounded.Read();
  int64_t different = 0;
  for (int64_t i = 0; i < kSize; ++i) different += FloatOfFloat16(Float16Bits(found[i])) != halves[i];
  CHECK(different == 0);
}

}  // namespace warpsmith
