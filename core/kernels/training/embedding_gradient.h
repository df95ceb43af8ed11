// The gradient of an embedding, without atomics: contract, order, and the reference on a CPU.
//
//   embedding_grad[t, :] = embedding_grad[t, :] + sum over the rows r of token t of x_grad[r, :]
//
// in float32, a token's rows one after another.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace warpsmith {

// Rows of a batch by token: those of tokens[i] are rows[indptr[i]], ..., rows[indptr[i + 1] - 1], ascending.
struct RowsByToken {
  std::vector<int32_t> tokens;  // those that occur, ascending
  std::vector<int32_t> indptr;  // one more than tokens
  std::vector<int32_t> rows;    // all rows
};
RowsByToken SortByToken(absl::Span<const int64_t> token_of_row);

// T is what is stored: bfloat16 or float on a device, float in the reference. All arrays are dense.
template <typename T>
struct EmbeddingGradient {
  int64_t num_tokens = 0;  // those of RowsByToken
  int64_t size = 0;
  const int32_t* tokens = nullptr;
  const int32_t* indptr = nullptr;
  const int32_t* rows = nullptr;
  const T* x_grad = nullptr;        // [rows, size]
  float* embedding_grad = nullptr;  // [ids of the tokenizer, size]: added to
};

void EmbeddingGradientReference(const EmbeddingGradient<float>& gradient);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_H_
