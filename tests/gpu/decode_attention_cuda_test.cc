#include "core/kernels/decode_attention_cuda.h"

#include <cmath>
#include <limits>

#include "core/kernels/attention_inputs_cuda.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kPositions = 4096;

struct Shape {
  int64_t num_kv_heads, group_size, head_dim, page_tokens;
  bool biased, normed;

  int64_t entry_size() const { return num_kv_heads * head_dim; }
  int64_t qkv_size() const { return entry_size() * (group_size + 2); }
};

// Decoding rows with these numbers of tokens, the last of which is the row's own: its entry is NaN, as are those behind
// it and pages between those in use. T is what is stored.
template <typename T>
class DecodingRows {
 public:
  DecodingRows(const Shape& shape, const std::vector<int>& contexts, int64_t context_tokens_max)
      : shape_(shape),
        bounds_{1, context_tokens_max},
        rows_(std::ssize(contexts)),
        page_indptr_(PageStarts(shape, contexts)),
        page_indices_(ScatteredPages(page_indptr_.back())),
        pages_(Pages(shape, contexts, page_indptr_, page_indices_)),
        page_indptr_device_(page_indptr_),
        page_indices_device_(page_indices_),
        row_indptr_(Counted(rows_ + 1)),
        positions_(Positions(contexts)),
        entries_(Entries(shape, contexts, page_indptr_, page_indices_)),
        qkv_(RandomStored<T>(rows_ * shape.qkv_size(), 1)),
        bias_(RandomStored<T>(shape.qkv_size(), 2)),
        query_norm_(Weights(shape.head_dim, 3)),
        key_norm_(Weights(shape.head_dim, 4)),
        cosines_(Table(shape, 0.0f)),
        sines_(Table(shape, 1.0f)),
        queries_(std::vector<float>(rows_ * shape.entry_size() * shape.group_size, NAN)),
        workspace_(std::vector<char>(PagedAttentionWorkspaceBytes(rows_, shape.num_kv_heads, shape.group_size,
                                                                  shape.head_dim, bounds_) +
                                         1,
                                     '\xff')) {}

  struct Result {
    std::vector<float> keys, values, output;

    // NaN in the same places counts as equal.
    static bool AreEqual(const std::vector<float>& a, const std::vector<float>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
    }
    bool operator==(const Result& other) const {
      return AreEqual(keys, other.keys) && AreEqual(values, other.values) && AreEqual(output, other.output);
    }
    bool IsFinite() const {
      return std::all_of(output.begin(), output.end(), [](float value) { return std::isfinite(value); });
    }
  };

  // Calls run(inputs, attention, bounds, workspace) on copies of the pages.
  template <typename Run>
  Result After(Run run) const {
    const StoredArray<T> keys(pages_), values(pages_),
        output(std::vector<float>(rows_ * shape_.entry_size() * shape_.group_size, NAN));
    const AttentionInputs<T> inputs = {.rows = rows_,
                                       .num_kv_heads = shape_.num_kv_heads,
                                       .group_size = shape_.group_size,
                                       .head_dim = shape_.head_dim,
                                       .eps = 1e-6f,
                                       .qkv = qkv_.get(),
                                       .bias = shape_.biased ? bias_.get() : nullptr,
                                       .query_norm = shape_.normed ? query_norm_.get() : nullptr,
                                       .key_norm = shape_.normed ? key_norm_.get() : nullptr,
                                       .cosines = cosines_.get(),
                                       .sines = sines_.get(),
                                       .positions = positions_.get(),
                                       .kv_entries = entries_.get(),
                                       .queries = queries_.get(),
                                       .key_pages = keys.get(),
                                       .value_pages = values.get()};
    const PagedAttention<T> attention = {.num_queries = rows_,
                                         .rows = rows_,
                                         .num_kv_heads = shape_.num_kv_heads,
                                         .group_size = shape_.group_size,
                                         .head_dim = shape_.head_dim,
                                         .page_tokens = shape_.page_tokens,
                                         .scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim)),
                                         .row_indptr = row_indptr_.get(),
                                         .page_indptr = page_indptr_device_.get(),
                                         .page_indices = page_indices_device_.get(),
                                         .positions = positions_.get(),
                                         .queries = queries_.get(),
                                         .key_pages = keys.get(),
                                         .value_pages = values.get(),
                                         .output = output.get()};
    run(inputs, attention, bounds_, workspace_.get());
    return {keys.Read(), values.Read(), output.Read()};
  }

 private:
  static std::vector<int32_t> Counted(int64_t count) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(i));
    return values;
  }
  static std::vector<int32_t> PageStarts(const Shape& shape, const std::vector<int>& contexts) {
    std::vector<int32_t> starts = {0};
    for (const int context : contexts) {
      starts.push_back(
          static_cast<int32_t>(starts.back() + (context + shape.page_tokens - 1) / shape.page_tokens));
    }
    return starts;
  }
  // From the last to the first, every second one.
  static std::vector<int32_t> ScatteredPages(int32_t count) {
    std::vector<int32_t> pages;
    for (int32_t i = 0; i < count; ++i) pages.push_back(2 * (count - i) - 1);
    return pages;
  }
  static int64_t EntryOf(const Shape& shape, const std::vector<int32_t>& pages, int32_t first_page,
                         int64_t position) {
    return pages[first_page + position / shape.page_tokens] * shape.page_tokens +
           position % shape.page_tokens;
  }
  static std::vector<float> Pages(const Shape& shape, const std::vector<int>& contexts,
                                  const std::vector<int32_t>& starts, const std::vector<int32_t>& pages) {
    const int64_t size = shape.entry_size();
    std::vector<float> entries(2 * std::ssize(pages) * shape.page_tokens * size, NAN);
    for (size_t row = 0; row < contexts.size(); ++row) {
      const std::vector<float> random = RandomStored<T>(contexts[row] * size, 100 + row);
      for (int64_t p = 0; p + 1 < contexts[row]; ++p) {
        std::copy_n(random.begin() + p * size, size,
                    entries.begin() + EntryOf(shape, pages, starts[row], p) * size);
      }
    }
    return entries;
  }
  static std::vector<int32_t> Entries(const Shape& shape, const std::vector<int>& contexts,
                                      const std::vector<int32_t>& starts, const std::vector<int32_t>& pages) {
    std::vector<int32_t> entries;
    for (size_t row = 0; row < contexts.size(); ++row) {
      entries.push_back(static_cast<int32_t>(EntryOf(shape, pages, starts[row], contexts[row] - 1)));
    }
    return entries;
  }
  static std::vector<int32_t> Positions(const std::vector<int>& contexts) {
    std::vector<int32_t> positions;
    for (const int context : contexts) positions.push_back(context - 1);
    return positions;
  }
  // Of norms: scores so large that some positions have most of the weight.
  static std::vector<float> Weights(int64_t size, uint64_t seed) {
    std::vector<float> weights = RandomStored<T>(size, seed);
    for (float& weight : weights) weight = RoundToDtype(3 * weight, kStoredDtype<T>);
    return weights;
  }
  static std::vector<float> Table(const Shape& shape, float phase) {
    std::vector<float> table;
    for (int64_t i = 0; i < kPositions * shape.head_dim / 2; ++i) {
      table.push_back(std::cos(0.37f * static_cast<float>(i % 10007) - phase * std::acos(0.0f)));
    }
    return table;
  }

  Shape shape_;
  PagedAttentionBounds bounds_;
  int64_t rows_;
  std::vector<int32_t> page_indptr_, page_indices_;
  std::vector<float> pages_;
  DeviceVector<int32_t> page_indptr_device_, page_indices_device_, row_indptr_, positions_, entries_;
  StoredArray<T> qkv_, bias_, query_norm_, key_norm_;
  DeviceArray cosines_, sines_;
  StoredArray<T> queries_;
  DeviceVector<char> workspace_;
};

template <typename T>
void Apart(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
           const PagedAttentionBounds& bounds, void* workspace) {
  REQUIRE(LaunchAttentionInputs<T>(inputs, nullptr) == cudaSuccess);
  REQUIRE(LaunchPagedAttention(attention, bounds, workspace, nullptr) == cudaSuccess);
}

template <typename T>
void Together(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
              const PagedAttentionBounds& bounds, void*) {
  REQUIRE(CanDecodeAttention(inputs, attention, bounds));
  REQUIRE(LaunchDecodeAttention(inputs, attention, bounds, nullptr) == cudaSuccess);
}

TEMPLATE_TEST_CASE("attention with its inputs has the bits of both one after the other", "", __nv_bfloat16,
                   __half) {
  using Rows = DecodingRows<TestType>;
  for (const Shape& shape : {Shape{8, 2, 128, 16, false, true}, Shape{4, 7, 64, 48, true, false},
                             Shape{2, 16, 128, 16, true, true}, Shape{1, 1, 64, 128, false, false},
                             Shape{8, 4, 128, 256, false, true}}) {
    for (const int context : {1, 2, 16, 31, 33, 255, 256, 257, 512, 513, 1000, 1800, 2048}) {
      for (const int64_t context_max : {2048, context}) {
        INFO(shape.num_kv_heads << " x " << shape.group_size << " heads of " << shape.head_dim << ", "
                                << context << " tokens of at most " << context_max);
        const Rows rows(shape, {context}, context_max);
        const typename Rows::Result together = rows.After(Together<TestType>);
        CHECK(together.IsFinite());
        CHECK(together == rows.After(Apart<TestType>));
      }
    }
  }
}

TEST_CASE("attention with its inputs has the same bits for several rows, early or not") {
  using Rows = DecodingRows<__nv_bfloat16>;
  const Rows rows({2, 4, 128, 16, false, true}, {1000, 300, 2000, 17}, 2048);
  const Rows::Result expected = rows.After(Apart<__nv_bfloat16>);
  CHECK(rows.After(Together<__nv_bfloat16>) == expected);
  // What the launch before leaves is written again, and nothing else.
  const auto early = [](const AttentionInputs<__nv_bfloat16>& inputs,
                        const PagedAttention<__nv_bfloat16>& attention, const PagedAttentionBounds& bounds,
                        void*) {
    for (int i = 0; i < 20; ++i) {
      REQUIRE(LaunchDecodeAttention(inputs, attention, bounds, nullptr,
                                    i == 0 ? KernelStart::kAfterFormer : KernelStart::kBesideFormer) ==
              cudaSuccess);
    }
  };
  CHECK(rows.After(early) == expected);
}

TEST_CASE("attention with its inputs is refused where both differ, or rows are many or long") {
  AttentionInputs<__nv_bfloat16> inputs{.rows = 1, .num_kv_heads = 8, .group_size = 4, .head_dim = 128};
  PagedAttention<__nv_bfloat16> attention{.num_queries = 1,
                                          .rows = 1,
                                          .num_kv_heads = 8,
                                          .group_size = 4,
                                          .head_dim = 128,
                                          .page_tokens = 16,
                                          .scale = 1};
  CHECK(CanDecodeAttention(inputs, attention, {1, 2048}));
  CHECK_FALSE(CanDecodeAttention(inputs, attention, {1, 2049}));
  CHECK_FALSE(CanDecodeAttention(inputs, attention, {2, 1000}));
  inputs.head_dim = 64;
  CHECK_FALSE(CanDecodeAttention(inputs, attention, {1, 1000}));
  CHECK(LaunchDecodeAttention(inputs, attention, {1, 1000}, nullptr) == cudaErrorInvalidValue);
  inputs.head_dim = 128;
  inputs.rows = attention.rows = attention.num_queries = 2;
  CHECK_FALSE(CanDecodeAttention(inputs, attention, {1, 1000}));
}

}  // namespace
}  // namespace warpsmith
