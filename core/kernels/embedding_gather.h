// Rows of an embedding for tokens that the host knows, or that an earlier step left on the device: contract, and
// the reference on a CPU.
//
//   x[r, :] = embedding[token(r), :]
//   token(r) = token_ids[r], or last_tokens[token_slots[r]] where token_ids[r] is kTokenInSlot
#ifndef WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_H_
#define WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_H_

#include <cstdint>

namespace warpsmith {

inline constexpr int32_t kTokenInSlot = -1;

// T is what is stored: bfloat16 or float on a device, float in the reference. All arrays are dense.
template <typename T>
struct EmbeddingGather {
  int64_t rows = 0;
  int64_t size = 0;
  int64_t num_tokens = 0;
  const T* embedding = nullptr;          // [num_tokens, size]
  const int32_t* token_ids = nullptr;    // [rows]
  const int32_t* token_slots = nullptr;  // [rows], read where the token is in a slot
  const int32_t* last_tokens = nullptr;  // [slots]
  T* x = nullptr;                        // [rows, size]
};

// Not below 0 or from num_tokens on where the host's ids are valid and the slot holds a token. A row whose token
// is out of range becomes NaN, so that a slot without a token reads no foreign memory and shows in the logits.
template <typename T>
constexpr int32_t TokenOfRow(const EmbeddingGather<T>& gather, int64_t row) {
  const int32_t known = gather.token_ids[row];
  return known == kTokenInSlot ? gather.last_tokens[gather.token_slots[row]] : known;
}

void EmbeddingGatherReference(const EmbeddingGather<float>& gather);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_H_
