// What paged attention on a GPU is built for.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_BOUNDS_H_
#define WARPSMITH_CORE_KERNELS_ATTENTION_BOUNDS_H_

#include <climits>
#include <cstdint>

#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {

inline constexpr int kPageGroupTokens = 16;  // tokens that surely lie in one page
inline constexpr int64_t kGroupSizeMax = 16;

inline int64_t SplitsMax(const PagedAttentionBounds& bounds) {
  return (bounds.context_tokens_max + kAttentionSplitTokens - 1) / kAttentionSplitTokens;
}

inline bool Decodes(const PagedAttentionBounds& bounds) { return bounds.rows_of_query_max == 1; }

template <typename T>
bool IsAttentionBuilt(const PagedAttention<T>& attention, const PagedAttentionBounds& bounds) {
  const bool heads_fit = (attention.head_dim == 64 || attention.head_dim == 128) &&
                         attention.num_kv_heads >= 1 && attention.group_size >= 1 &&
                         attention.group_size <= kGroupSizeMax;
  const bool pages_fit =
      attention.page_tokens >= kPageGroupTokens && attention.page_tokens % kPageGroupTokens == 0;
  const bool bounds_fit = bounds.rows_of_query_max >= 1 && bounds.context_tokens_max >= 1 &&
                          bounds.context_tokens_max <= INT_MAX - kAttentionSplitTokens &&
                          (!Decodes(bounds) || attention.rows == attention.num_queries);
  if (!heads_fit || !pages_fit || !bounds_fit) return false;
  // Blocks count items in 32 bits: of chunks those of rows, of decoding rows those of splits.
  const int64_t items_of_row = Decodes(bounds) ? SplitsMax(bounds) : 1;
  return attention.scale > 0 && attention.num_queries >= 0 && attention.rows >= attention.num_queries &&
         attention.rows <= INT_MAX / kGroupSizeMax / attention.num_kv_heads / items_of_row;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_BOUNDS_H_
