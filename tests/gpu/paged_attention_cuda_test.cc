#include "core/kernels/paged_attention_cuda.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/gpu/attention_batch.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Shape = AttentionShape;
using Query = AttentionQuery;
using Batch = AttentionBatch;

struct DeviceBatch {
  DeviceBatch(const Batch& b, const PagedAttentionBounds& wanted)
      : bounds(wanted),
        row_indptr(b.row_indptr),
        page_indptr(b.page_indptr),
        page_indices(b.page_indices),
        positions(b.positions),
        queries(b.queries),
        keys(b.keys),
        values(b.values),
        output(b.output),
        workspace(
            std::vector<char>(PagedAttentionWorkspaceBytes(std::ssize(b.positions), b.shape.num_kv_heads,
                                                           b.shape.group_size, b.shape.head_dim, wanted) +
                                  1,
                              '\xff')),
        attention(b.Attention<__nv_bfloat16>(row_indptr.get(), page_indptr.get(), page_indices.get(),
                                             positions.get(), queries.get(), keys.get(), values.get(),
                                             output.get())) {}

  cudaError_t Run(cudaStream_t stream = nullptr) {
    return LaunchPagedAttention(attention, bounds, workspace.get(), stream);
  }

  PagedAttentionBounds bounds;
  DeviceVector<int32_t> row_indptr, page_indptr, page_indices, positions;
  Bfloat16Array queries, keys, values, output;
  DeviceVector<char> workspace;
  PagedAttention<__nv_bfloat16> attention;
};

std::vector<float> OnDevice(const Batch& batch, const PagedAttentionBounds& bounds) {
  DeviceBatch device(batch, bounds);
  REQUIRE(device.Run() == cudaSuccess);
  return device.output.Read();
}
std::vector<float> OnDevice(const Batch& batch) { return OnDevice(batch, batch.Bounds()); }

// The largest error in units of what is allowed: half a step of bfloat16 for the output (2^-8 of it), and half a step
// for each weight, of values of at most 1 whose weights are 1 in sum (2^-9 at most; signs differ, so it is less).
double LargestAttentionError(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double error = std::abs(double{found[i]} - expected[i]) / (std::abs(expected[i]) * 0x1p-7 + 0x1p-9);
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

// Around the ends of tiles, pages and splits.
std::vector<Query> DecodingQueries() {
  std::vector<Query> queries;
  for (const int context : {1, 2, 16, 17, 31, 32, 33, 48, 64, 200, 255, 256, 257, 300, 511, 512, 513, 1100}) {
    queries.push_back({static_cast<int>(queries.size()), 1, context});
  }
  return queries;
}

TEST_CASE("attention of decoding rows equals the CPU's, for heads, groups and pages of all sizes") {
  for (const Shape& shape :
       {Shape{1, 1, 64, 16}, {2, 4, 128, 16}, {1, 16, 128, 48}, {3, 5, 64, 128}, {8, 4, 128, 256}}) {
    INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim << ", pages of "
                            << shape.page_tokens);
    Batch batch(shape, DecodingQueries());
    CHECK(LargestAttentionError(OnDevice(batch), batch.OnHost()) <= 1.0);
  }
}

TEST_CASE("attention of chunks equals the CPU's, wherever they begin and end") {
  const std::vector<Query> queries = {{0, 1, 1},     {1, 70, 70}, {2, 16, 300},
                                      {3, 129, 530}, {4, 1, 257}, {5, 40, 256}};
  for (const Shape& shape : {Shape{1, 1, 64, 16}, {2, 4, 128, 16}, {1, 16, 64, 48}, {2, 3, 128, 32}}) {
    INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim);
    Batch batch(shape, queries);
    CHECK(LargestAttentionError(OnDevice(batch), batch.OnHost()) <= 1.0);
  }
}

// A row's part of an output.
std::vector<float> RowOf(const Batch& batch, const std::vector<float>& output, int64_t row) {
  const int64_t size = batch.shape.row_size();
  return {output.begin() + row * size, output.begin() + (row + 1) * size};
}

TEST_CASE("a row has the same bits decoded alone, in a batch, and in chunks of any cut") {
  for (const Shape& shape : {Shape{2, 4, 128, 16}, Shape{1, 7, 64, 48}}) {
    constexpr int kContext = 600;
    const Batch whole(shape, {{0, kContext, kContext}});
    const std::vector<float> expected = OnDevice(whole);
    for (const int cut : {1, 64, 250, 256, 599}) {
      INFO("cut at " << cut);
      const Batch chunks(shape, {{7, 30, 90}, {0, cut, cut}, {0, kContext - cut, kContext}});
      const std::vector<float> found = OnDevice(chunks);
      CHECK(std::equal(expected.begin(), expected.end(), found.begin() + 30 * shape.row_size()));
    }
    std::vector<Query> decoding;
    for (const int context : {1, 5, 33, 256, 257, 511, 513, 600}) {
      decoding.push_back({0, 1, context});
      const Batch alone(shape, {{0, 1, context}});
      INFO("context " << context);
      CHECK(OnDevice(alone) == RowOf(whole, expected, context - 1));
      CHECK(OnDevice(alone, {1, 32768}) == RowOf(whole, expected, context - 1));
      CHECK(OnDevice(alone, {2, 4000}) == RowOf(whole, expected, context - 1));
    }
    for (int i = 0; i < 70; ++i) decoding.push_back({1, 1, 1});  // padding, beyond one round of counting
    decoding.push_back({0, 1, 400});
    const Batch batch(shape, decoding);
    const std::vector<float> found = OnDevice(batch);
    for (size_t i = 0; i < decoding.size(); ++i) {
      if (decoding[i].sequence != 0) continue;
      INFO("query " << i);
      CHECK(RowOf(batch, found, static_cast<int64_t>(i)) == RowOf(whole, expected, decoding[i].context - 1));
    }
  }
}

// Of 8 KV heads 132 multiprocessors have a block for each of a row's 9 splits, but not for each of four rows'.
TEST_CASE("few rows have the same bits whether each split has a block or warps take splits in turn") {
  for (const Shape& shape : {Shape{8, 4, 128, 16}, Shape{8, 16, 128, 32}, Shape{8, 2, 64, 48}}) {
    const std::vector<Query> queries = {{0, 1, 2300}, {1, 1, 2049}, {2, 1, 1}, {3, 1, 2304}};
    const Batch together(shape, queries);
    const std::vector<float> found = OnDevice(together);
    for (size_t i = 0; i < queries.size(); ++i) {
      INFO("query " << i << ", groups of " << shape.group_size << " heads of " << shape.head_dim);
      CHECK(OnDevice(Batch(shape, {queries[i]})) == RowOf(together, found, static_cast<int64_t>(i)));
    }
  }
}

TEST_CASE("a query that looks for one key gets the value of its position") {
  constexpr int kContext = 530;
  for (const int64_t head_dim : {64, 128}) {
    std::vector<Query> one = {{0, kContext, kContext}};
    Batch batch({1, 1, head_dim, 16}, one);
    std::vector<float> expected;
    for (int64_t p = 0; p < kContext; ++p) {
      const int64_t at = (batch.page_indices[p / 16] * 16 + p % 16) * head_dim;
      for (int64_t d = 0; d < head_dim; ++d) {
        batch.keys[at + d] = batch.keys[at + d] < 0 ? -1.0f : 1.0f;
        batch.queries[p * head_dim + d] = 16 * batch.keys[at + d];
        expected.push_back(batch.values[at + d]);
      }
    }
    CHECK(LargestError(OnDevice(batch), expected) <= 1.0);
  }
}

TEST_CASE("a captured launch runs again with other contents") {
  const Shape shape = {2, 4, 128, 16};
  Batch first(shape, {{0, 1, 700}, {1, 1, 20}}), second(shape, {{2, 1, 30}, {3, 1, 690}});
  DeviceBatch device(first, {1, 2048});
  REQUIRE(device.Run() == cudaSuccess);  // so that the kernels are loaded
  const DeviceBatch other(second, {1, 2048});
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(device.Run(stream) == cudaSuccess);
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(replay, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(LargestAttentionError(device.output.Read(), first.OnHost()) <= 1.0);

  // As many pages in all, so that each array has its size.
  REQUIRE(second.page_indices.size() == first.page_indices.size());
  const auto copy = [](auto* to, const auto* from, size_t size) {
    REQUIRE(cudaMemcpy(to, from, size * sizeof(*to), cudaMemcpyDeviceToDevice) == cudaSuccess);
  };
  copy(device.page_indptr.get(), other.page_indptr.get(), second.page_indptr.size());
  copy(device.page_indices.get(), other.page_indices.get(), second.page_indices.size());
  copy(device.positions.get(), other.positions.get(), second.positions.size());
  copy(device.queries.get(), other.queries.get(), second.queries.size());
  copy(device.keys.get(), other.keys.get(), second.keys.size());
  copy(device.values.get(), other.values.get(), second.values.size());
  REQUIRE(cudaGraphLaunch(replay, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(LargestAttentionError(device.output.Read(), second.OnHost()) <= 1.0);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_CASE("attention refuses what is not built, and takes no queries") {
  PagedAttention<__nv_bfloat16> attention;
  attention.num_kv_heads = 2, attention.group_size = 4, attention.head_dim = 128, attention.page_tokens = 16;
  attention.scale = 1;
  CHECK(LaunchPagedAttention(attention, {1, 100}, nullptr, nullptr) == cudaSuccess);
  for (const auto& change : std::vector<std::function<void(PagedAttention<__nv_bfloat16>&)>>{
           [](auto& a) { a.head_dim = 96; }, [](auto& a) { a.group_size = 17; },
           [](auto& a) { a.group_size = 0; }, [](auto& a) { a.page_tokens = 24; },
           [](auto& a) { a.page_tokens = 0; }, [](auto& a) { a.num_kv_heads = 0; },
           [](auto& a) { a.scale = 0; }, [](auto& a) { a.rows = 3; }}) {
    PagedAttention<__nv_bfloat16> changed = attention;
    change(changed);
    CHECK(LaunchPagedAttention(changed, {1, 100}, nullptr, nullptr) == cudaErrorInvalidValue);
  }
  CHECK(LaunchPagedAttention(attention, {1, 0}, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchPagedAttention(attention, {0, 100}, nullptr, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
