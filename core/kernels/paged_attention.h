// Attention over the pages of a KV cache, for decoding and for chunks of prompts alike: contract, formula, and the
// reference on a CPU.
//
//   o[r, h] = sum_p a[p] v[p, h / group_size],  a = softmax_p(scale q[r, h] . k[p, h / group_size])
//
// over the positions p = 0 .. positions[r] of the row's sequence; each o rounded to what is stored once.
#ifndef WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_H_
#define WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. All
// arrays are dense. A query is the rows of one sequence, at least one, its last positions in order: one row when it
// decodes, several when a chunk of its prompt is computed. Position p of query q is entry p % page_tokens of page
// page_indices[page_indptr[q] + p / page_tokens]; pages are laid out as AttentionInputs writes them.
template <typename T>
struct PagedAttention {
  int64_t num_queries = 0;
  int64_t rows = 0;
  int64_t num_kv_heads = 0;
  int64_t group_size = 0;  // query heads a KV head
  int64_t head_dim = 0;
  int64_t page_tokens = 0;
  float scale = 0;                        // 1 / sqrt(head_dim)
  const int32_t* row_indptr = nullptr;    // [num_queries + 1] first row of each query
  const int32_t* page_indptr = nullptr;   // [num_queries + 1] first page of each query, in page_indices
  const int32_t* page_indices = nullptr;  // pages in the order of positions
  const int32_t* positions = nullptr;     // [rows]
  const T* queries = nullptr;             // [rows, num_kv_heads * group_size, head_dim]
  const T* key_pages = nullptr;           // [entries, num_kv_heads, head_dim]
  const T* value_pages = nullptr;         // likewise
  T* output = nullptr;                    // [rows, num_kv_heads * group_size, head_dim]
};

// First element of query head `head` * group_size + `of_group` of a row, in queries and output.
template <typename T>
constexpr int64_t QueryHeadOffset(const PagedAttention<T>& attention, int64_t row, int64_t head,
                                  int64_t of_group) {
  return ((row * attention.num_kv_heads + head) * attention.group_size + of_group) * attention.head_dim;
}

// Softmax and sums in float64.
void PagedAttentionReference(const PagedAttention<float>& attention,
                             DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_H_
