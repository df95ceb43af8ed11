// Times of attention, printed and not asserted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/kernels/paged_attention_cuda.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

struct Shape {
  int64_t num_kv_heads, group_size, head_dim, page_tokens;

  int64_t entry_size() const { return num_kv_heads * head_dim; }
  int64_t row_size() const { return entry_size() * group_size; }
};

// Queries over pages of their own, in a pool whose contents repeat.
struct RateArrays {
  RateArrays(const Shape& s, int64_t num_queries, int64_t rows_of_query, const std::vector<int64_t>& contexts)
      : shape(s), rows(num_queries * rows_of_query) {
    std::vector<int32_t> row_starts = {0}, page_starts = {0}, at;
    for (int64_t q = 0; q < num_queries; ++q) {
      const int64_t context = contexts[q % std::ssize(contexts)];
      for (int64_t r = 0; r < rows_of_query; ++r)
        at.push_back(static_cast<int32_t>(context - rows_of_query + r));
      row_starts.push_back(static_cast<int32_t>(at.size()));
      page_starts.push_back(
          static_cast<int32_t>(page_starts.back() + (context + s.page_tokens - 1) / s.page_tokens));
      tokens += context;
    }
    std::vector<int32_t> indices(page_starts.back());
    for (size_t i = 0; i < indices.size(); ++i) {  // 7919 is prime: neighbours lie apart
      indices[i] = static_cast<int32_t>(i * 7919 % indices.size());
    }
    if (indices.size() % 7919 == 0) std::iota(indices.begin(), indices.end(), 0);
    row_indptr.emplace(row_starts), page_indptr.emplace(page_starts), page_indices.emplace(indices),
        positions.emplace(at);
    const size_t size = indices.size() * s.page_tokens * s.entry_size();
    keys.emplace(Repeated(size)), values.emplace(Repeated(size));
    queries.emplace(Repeated(rows * s.row_size())), output.emplace(Repeated(rows * s.row_size()));
  }

  static std::vector<uint16_t> Repeated(size_t size) {
    std::vector<uint16_t> bits(size);
    const std::vector<float> pattern =
        RandomFloats(std::min<int64_t>(static_cast<int64_t>(size), 1 << 16), 3);
    for (size_t i = 0; i < pattern.size(); ++i) bits[i] = Bfloat16Bits(pattern[i]);
    for (size_t i = pattern.size(); i < size; ++i) bits[i] = bits[i - pattern.size()];
    return bits;
  }
  PagedAttention<__nv_bfloat16> Attention() const {
    const auto of = [](const auto& array) { return reinterpret_cast<__nv_bfloat16*>(array->get()); };
    return {static_cast<int64_t>(row_indptr->size()) - 1,
            rows,
            shape.num_kv_heads,
            shape.group_size,
            shape.head_dim,
            shape.page_tokens,
            1 / std::sqrt(static_cast<float>(shape.head_dim)),
            row_indptr->get(),
            page_indptr->get(),
            page_indices->get(),
            positions->get(),
            of(queries),
            of(keys),
            of(values),
            of(output)};
  }
  // Keys and values, once.
  size_t bytes() const { return 2 * tokens * shape.entry_size() * sizeof(uint16_t); }

  Shape shape;
  int64_t rows, tokens = 0;
  std::optional<DeviceVector<int32_t>> row_indptr, page_indptr, page_indices, positions;
  std::optional<DeviceVector<uint16_t>> keys, values, queries, output;
};

void PrintDecodeRate(const char* name, int64_t num_queries, const std::vector<int64_t>& contexts,
                     int64_t context_max) {
  const Shape shape = {8, 4, 128, 16};
  const RateArrays arrays(shape, num_queries, 1, contexts);
  const PagedAttentionBounds bounds = {1, context_max};
  const DeviceVector<char> workspace(
      std::vector<char>(PagedAttentionWorkspaceBytes(num_queries, 8, 4, 128, bounds) + 1));
  PrintRate(name, arrays.bytes(), [&] {
    return LaunchPagedAttention(arrays.Attention(), bounds, workspace.get(), nullptr,
                                KernelStart::kBesideFormer);
  });
}

TEST_CASE("the rate of attention of decoding rows, 8 KV heads of 128 in groups of 4") {
  PrintDecodeRate("attention, 64 rows of 1,024 tokens", 64, {1024}, 1024);
  PrintDecodeRate("attention, 64 rows of 900 to 1,156 tokens, at most 32,768", 64,
                  {900, 1156, 1000, 1100, 1019}, 32768);
  PrintDecodeRate(
      "attention, 64 rows, one of 32,768 tokens, the others of 512", 64,
      [] {
        std::vector<int64_t> contexts(64, 512);
        contexts[17] = 32768;
        return contexts;
      }(),
      32768);
  PrintDecodeRate("attention, 256 rows of 1,024 tokens", 256, {1024}, 8192);
  PrintDecodeRate("attention, 8 rows of 4,096 tokens", 8, {4096}, 32768);
  PrintDecodeRate("attention, 1 row of 1,024 tokens", 1, {1024}, 32768);
  PrintDecodeRate("attention, 1 row of 8,192 tokens", 1, {8192}, 32768);
  PrintDecodeRate("attention, 64 padding rows", 64, {1}, 32768);
}

TEST_CASE("the rate of attention of chunks, 8 KV heads of 128 in groups of 4") {
  for (const auto& [num_queries, rows, context] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 2048, 2048}, {1, 512, 8192}, {8, 512, 512}}) {
    const RateArrays arrays({8, 4, 128, 16}, num_queries, rows, {context});
    const PagedAttentionBounds bounds = {rows, context};
    const double seconds =
        MedianSeconds([&] { return LaunchPagedAttention(arrays.Attention(), bounds, nullptr, nullptr); });
    // Two products of 2 operations for each row's position, half of those of the chunk itself.
    const double pairs =
        static_cast<double>(num_queries * rows) * (static_cast<double>(context) - 0.5 * rows);
    std::printf("attention, %lld chunks of %lld rows that end at %lld: %.1f us, %.0f TFLOP/s\n",
                static_cast<long long>(num_queries), static_cast<long long>(rows),
                static_cast<long long>(context), seconds * 1e6, 4 * pairs * 32 * 128 / seconds * 1e-12);
  }
}

}  // namespace
}  // namespace warpsmith
