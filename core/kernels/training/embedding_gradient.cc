#include "core/kernels/training/embedding_gradient.h"

#include <algorithm>
#include <numeric>

namespace warpsmith {

RowsByToken SortByToken(absl::Span<const int64_t> token_of_row) {
  RowsByToken sorted;
  sorted.rows.resize(token_of_row.size());
  std::iota(sorted.rows.begin(), sorted.rows.end(), 0);
  std::stable_sort(sorted.rows.begin(), sorted.rows.end(),
                   [&](int32_t a, int32_t b) { return token_of_row[a] < token_of_row[b]; });
  for (size_t i = 0; i < sorted.rows.size(); ++i) {
    const auto token = static_cast<int32_t>(token_of_row[sorted.rows[i]]);
    if (!sorted.tokens.empty() && sorted.tokens.back() == token) continue;
    sorted.tokens.push_back(token);
    sorted.indptr.push_back(static_cast<int32_t>(i));
  }
  sorted.indptr.push_back(static_cast<int32_t>(sorted.rows.size()));
  return sorted;
}

void EmbeddingGradientReference(const EmbeddingGradient<float>& g) {
  for (int64_t token = 0; token < g.num_tokens; ++token) {
    float* const to = g.embedding_grad + g.tokens[token] * g.size;
    for (int32_t i = g.indptr[token]; i < g.indptr[token + 1]; ++i) {
      for (int64_t d = 0; d < g.size; ++d) to[d] += g.x_grad[g.rows[i] * g.size + d];
    }
  }
}

}  // namespace warpsmith
