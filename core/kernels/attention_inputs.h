// From the fused projection to what attention reads: bias, norm of heads, rotation, and keys and values into pages.
// Contract, places of heads, and the reference on a CPU.
//
// A row of `qkv` is made of KV groups, each its query heads, its key head, its value head. With h = head_dim / 2 and
// n = the head plus its bias, normed where there is a norm (KernelSet::norm_rotate):
//   y[i] = n[i] cos[i] - n[i + h] sin[i],  y[i + h] = n[i + h] cos[i] + n[i] sin[i]   queries and keys
//   y = head + bias                                                                     values
// in float32, each y rounded to what is stored once. Su et al., arXiv 2104.09864.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_H_
#define WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. All
// arrays are dense. Entry e of the pages is token e % page_tokens of page e / page_tokens: [pages, page_tokens, kv
// head, head_dim], which FlashInfer calls NHD.
template <typename T>
struct AttentionInputs {
  int64_t rows = 0;
  int64_t num_kv_heads = 0;
  int64_t group_size = 0;  // query heads a KV head
  int64_t head_dim = 0;
  float eps = 0;                        // of the norms of heads
  const T* qkv = nullptr;               // [rows, num_kv_heads, group_size + 2, head_dim]
  const T* bias = nullptr;              // [num_kv_heads, group_size + 2, head_dim]; null: none
  const T* query_norm = nullptr;        // [head_dim]; null: none
  const T* key_norm = nullptr;          // [head_dim]; null: none
  const float* cosines = nullptr;       // [positions, head_dim / 2]
  const float* sines = nullptr;         // [positions, head_dim / 2]
  const int32_t* positions = nullptr;   // [rows]
  const int32_t* kv_entries = nullptr;  // [rows], all different
  T* queries = nullptr;                 // [rows, num_kv_heads * group_size, head_dim]
  T* key_pages = nullptr;               // [entries, num_kv_heads, head_dim]
  T* value_pages = nullptr;             // likewise
};

enum class HeadKind { kQuery, kKey, kValue };

// What a head of a row of qkv is; `index` counts the queries, or the KV heads, of the row.
struct HeadPlace {
  HeadKind kind = HeadKind::kQuery;
  int64_t index = 0;
};

constexpr HeadPlace PlaceOfHead(int64_t head, int64_t group_size) {
  const int64_t group = head / (group_size + 2);
  const int64_t within = head % (group_size + 2);
  if (within < group_size) return {HeadKind::kQuery, group * group_size + within};
  return {within == group_size ? HeadKind::kKey : HeadKind::kValue, group};
}

template <typename T>
constexpr int64_t HeadsOfRow(const AttentionInputs<T>& inputs) {
  return inputs.num_kv_heads * (inputs.group_size + 2);
}

// Where the head of `row` goes: its first element.
template <typename T>
constexpr T* DestinationOf(const AttentionInputs<T>& inputs, HeadPlace place, int64_t row) {
  if (place.kind == HeadKind::kQuery) {
    return inputs.queries + (row * inputs.num_kv_heads * inputs.group_size + place.index) * inputs.head_dim;
  }
  T* const pages = place.kind == HeadKind::kKey ? inputs.key_pages : inputs.value_pages;
  return pages + (inputs.kv_entries[row] * inputs.num_kv_heads + place.index) * inputs.head_dim;
}

// By KernelSet::norm_rotate; head_dim even and at most 512.
void AttentionInputsReference(const AttentionInputs<float>& inputs,
                              DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_H_
