#include "core/kernels/float32_attention_cuda.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/gpu/attention_batch.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

struct DeviceBatch {
  DeviceBatch(const AttentionBatch& b, const PagedAttentionBounds& wanted)
      : bounds(wanted),
        row_indptr(b.row_indptr),
        page_indptr(b.page_indptr),
        page_indices(b.page_indices),
        positions(b.positions),
        queries(b.queries),
        keys(b.keys),
        values(b.values),
        output(b.output),
        attention(b.Attention<float>(row_indptr.get(), page_indptr.get(), page_indices.get(), positions.get(),
                                     queries.get(), keys.get(), values.get(), output.get())) {}

  PagedAttentionBounds bounds;
  DeviceVector<int32_t> row_indptr, page_indptr, page_indices, positions;
  DeviceArray queries, keys, values, output;
  PagedAttention<float> attention;
};

AttentionBatch Float32Batch(const AttentionShape& shape, const std::vector<AttentionQuery>& queries) {
  return AttentionBatch(shape, queries, DeviceDtype::kFloat32);
}

std::vector<float> OnDevice(const AttentionBatch& batch, const PagedAttentionBounds& bounds) {
  const DeviceBatch device(batch, bounds);
  REQUIRE(LaunchFloat32Attention(device.attention, device.bounds, nullptr) == cudaSuccess);
  return device.output.Read();
}
std::vector<float> OnDevice(const AttentionBatch& batch) { return OnDevice(batch, batch.Bounds()); }

// Scores are sums of 64 or 128 products of up to 6, and their error goes into the weights of values of up to 1; sums of
// weights and values add a few units of float32 each. A tenth of what the weights' first wrong digit would be.
constexpr double kErrorMax = 2e-5;

double LargestDifference(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double difference = std::abs(double{found[i]} - expected[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

}  // namespace

TEST_CASE("attention of decoding rows in float32 equals float64's, around the ends of tiles and pages") {
  std::vector<AttentionQuery> queries;
  for (const int context : {1, 2, 16, 17, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 513, 1100}) {
    queries.push_back({static_cast<int>(queries.size()), 1, context});
  }
  for (const AttentionShape& shape :
       {AttentionShape{1, 1, 64, 16}, {2, 4, 128, 16}, {1, 16, 128, 48}, {3, 5, 64, 128}}) {
    INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim);
    AttentionBatch batch = Float32Batch(shape, queries);
    const double error = LargestDifference(OnDevice(batch), batch.OnHost());
    std::printf("float32 attention, %lld x %lld heads of %lld: largest error %.1e\n",
                static_cast<long long>(shape.num_kv_heads), static_cast<long long>(shape.group_size),
                static_cast<long long>(shape.head_dim), error);
    CHECK(error <= kErrorMax);
  }
}

TEST_CASE("attention of chunks in float32 equals float64's, wherever they begin and end") {
  const std::vector<AttentionQuery> queries = {{0, 1, 1},     {1, 70, 70}, {2, 16, 300},
                                               {3, 129, 530}, {4, 1, 257}, {5, 40, 256}};
  for (const AttentionShape& shape : {AttentionShape{1, 1, 64, 16}, {2, 4, 128, 16}, {2, 3, 128, 32}}) {
    INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim);
    AttentionBatch batch = Float32Batch(shape, queries);
    CHECK(LargestDifference(OnDevice(batch), batch.OnHost()) <= kErrorMax);
  }
}

TEST_CASE("a row in float32 has the same bits decoded alone, in a batch, and in chunks of any cut") {
  const AttentionShape shape = {2, 4, 128, 16};
  constexpr int kContext = 300;
  const std::vector<float> whole = OnDevice(Float32Batch(shape, {{0, kContext, kContext}}));
  for (const int cut : {1, 64, 128, 299}) {
    INFO("cut at " << cut);
    const std::vector<float> found =
        OnDevice(Float32Batch(shape, {{7, 30, 90}, {0, cut, cut}, {0, kContext - cut, kContext}}));
    CHECK(std::equal(whole.begin(), whole.end(), found.begin() + 30 * shape.row_size()));
  }
  for (const int context : {1, 33, 128, 129, 300}) {
    INFO("context " << context);
    const AttentionBatch alone = Float32Batch(shape, {{0, 1, context}});
    const auto expected = whole.begin() + (context - 1) * shape.row_size();
    for (const PagedAttentionBounds& bounds : {PagedAttentionBounds{1, 4000}, {2, 4000}}) {
      const std::vector<float> found = OnDevice(alone, bounds);
      CHECK(std::equal(found.begin(), found.end(), expected));
    }
  }
}

TEST_CASE("attention in float32 refuses what is not built, and takes no queries") {
  PagedAttention<float> attention;
  attention.num_kv_heads = 2, attention.group_size = 4, attention.head_dim = 128, attention.page_tokens = 16;
  attention.scale = 1;
  CHECK(LaunchFloat32Attention(attention, {1, 100}, nullptr) == cudaSuccess);
  for (const auto& change : std::vector<std::function<void(PagedAttention<float>&)>>{
           [](auto& a) { a.head_dim = 96; }, [](auto& a) { a.group_size = 0; },
           [](auto& a) { a.page_tokens = 0; }, [](auto& a) { a.num_kv_heads = 0; },
           [](auto& a) { a.scale = 0; }, [](auto& a) { a.rows = 3; }}) {
    PagedAttention<float> changed = attention;
    change(changed);
    CHECK(LaunchFloat32Attention(changed, {1, 100}, nullptr) == cudaErrorInvalidValue);
  }
  CHECK(LaunchFloat32Attention(attention, {1, 0}, nullptr) == cudaErrorInvalidValue);
}

TEST_CASE("the rate of attention in float32 of a sequence that decodes, 2,048 positions of 8 heads of 128") {
  const AttentionBatch batch = Float32Batch({8, 2, 128, 16}, {{0, 1, 2048}});
  const DeviceBatch device(batch, batch.Bounds());
  PrintRate("float32 attention, 1 row", 2 * 2048 * 8 * 128 * sizeof(float),
            [&] { return LaunchFloat32Attention(device.attention, device.bounds, nullptr); });
}

}  // namespace warpsmith
