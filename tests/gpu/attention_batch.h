// Sequences for tests of attention over pages.
#ifndef WARPSMITH_TESTS_GPU_ATTENTION_BATCH_H_
#define WARPSMITH_TESTS_GPU_ATTENTION_BATCH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/paged_attention_cuda.h"
#include "tests/gpu/device_array.h"

namespace warpsmith {

struct AttentionShape {
  int64_t num_kv_heads, group_size, head_dim, page_tokens;

  int64_t entry_size() const { return num_kv_heads * head_dim; }
  int64_t row_size() const { return entry_size() * group_size; }
};

// The last `rows` rows of the first `context` positions of a sequence, whose number says what it holds.
struct AttentionQuery {
  int sequence;
  int rows;
  int context;
};

// A batch on the host. What no query may read, is NaN: pages in between, and what follows in a last page.
struct AttentionBatch {
  AttentionBatch(const AttentionShape& s, const std::vector<AttentionQuery>& batch,
                 DeviceDtype stored = DeviceDtype::kBfloat16)
      : shape(s), dtype(stored), all(batch) {
    for (const AttentionQuery& query : batch) AddQuery(query);
    for (size_t i = 0; i < page_indices.size(); ++i) {  // from the last to the first, every second one
      page_indices[i] = static_cast<int32_t>(2 * (page_indices.size() - i) - 1);
    }
    keys.assign(2 * page_indices.size() * s.page_tokens * s.entry_size(), NAN);
    values = keys;
    for (size_t i = 0; i < batch.size(); ++i) FillPages(batch[i], page_indptr[i]);
    output.assign(queries.size(), NAN);
  }

  void AddQuery(const AttentionQuery& query) {
    for (int position = query.context - query.rows; position < query.context; ++position) {
      positions.push_back(position);
      for (const float value : RandomFloats(shape.row_size(), 1000000 * (query.sequence + 1) + position)) {
        queries.push_back(
            RoundToDtype(6 * value, dtype));  // some dozens of positions have most of the weight
      }
    }
    row_indptr.push_back(static_cast<int32_t>(positions.size()));
    const int64_t pages = (query.context + shape.page_tokens - 1) / shape.page_tokens;
    page_indptr.push_back(static_cast<int32_t>(page_indptr.back() + pages));
    page_indices.resize(page_indptr.back());
  }
  void FillPages(const AttentionQuery& query, int32_t first_page) {
    const int64_t size = shape.entry_size();
    const std::vector<float> sequence_keys = Random(query.context * size, 2 * query.sequence);
    const std::vector<float> sequence_values = Random(query.context * size, 2 * query.sequence + 1);
    for (int64_t p = 0; p < query.context; ++p) {
      const int64_t entry =
          page_indices[first_page + p / shape.page_tokens] * shape.page_tokens + p % shape.page_tokens;
      std::copy_n(sequence_keys.begin() + p * size, size, keys.begin() + entry * size);
      std::copy_n(sequence_values.begin() + p * size, size, values.begin() + entry * size);
    }
  }

  std::vector<float> Random(int64_t size, uint64_t seed) const {
    std::vector<float> random = RandomFloats(size, seed);
    for (float& value : random) value = RoundToDtype(value, dtype);
    return random;
  }

  template <typename T>
  PagedAttention<T> Attention(const int32_t* rows, const int32_t* indptr, const int32_t* indices,
                              const int32_t* at, const T* q, const T* k, const T* v, T* o) const {
    const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    return {std::ssize(all),
            std::ssize(positions),
            shape.num_kv_heads,
            shape.group_size,
            shape.head_dim,
            shape.page_tokens,
            scale,
            rows,
            indptr,
            indices,
            at,
            q,
            k,
            v,
            o};
  }
  std::vector<float> OnHost() {
    PagedAttentionReference(
        Attention(row_indptr.data(), page_indptr.data(), page_indices.data(), positions.data(),
                  queries.data(), keys.data(), values.data(), output.data()),
        dtype);
    return output;
  }
  PagedAttentionBounds Bounds() const {
    PagedAttentionBounds bounds;
    for (const AttentionQuery& query : all) {
      bounds.rows_of_query_max = std::max<int64_t>(bounds.rows_of_query_max, query.rows);
      bounds.context_tokens_max = std::max<int64_t>(bounds.context_tokens_max, query.context);
    }
    return bounds;
  }

  AttentionShape shape;
  DeviceDtype dtype;
  std::vector<AttentionQuery> all;
  std::vector<int32_t> row_indptr = {0}, page_indptr = {0}, page_indices, positions;
  std::vector<float> queries, keys, values, output;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_ATTENTION_BATCH_H_
