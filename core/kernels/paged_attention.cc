#include "core/kernels/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace warpsmith {
namespace {

// First elements of the keys, or of the values, of one head at the positions 0 .. count - 1 of a query.
std::vector<const float*> HeadsOf(const PagedAttention<float>& attention, const float* pages, int64_t query,
                                  int64_t head, int64_t count) {
  std::vector<const float*> heads(count);
  for (int64_t p = 0; p < count; ++p) {
    const int64_t page = attention.page_indices[attention.page_indptr[query] + p / attention.page_tokens];
    const int64_t entry = page * attention.page_tokens + p % attention.page_tokens;
    heads[p] = pages + (entry * attention.num_kv_heads + head) * attention.head_dim;
  }
  return heads;
}

double Dot(const float* a, const float* b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += double{a[i]} * b[i];
  return sum;
}

void Attend(const PagedAttention<float>& attention, const float* query, const std::vector<const float*>& keys,
            const std::vector<const float*>& values, DeviceDtype stored, float* output) {
  std::vector<double> weights;
  for (const float* const key : keys)
    weights.push_back(attention.scale * Dot(query, key, attention.head_dim));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  std::vector<double> sums(attention.head_dim);
  for (size_t p = 0; p < weights.size(); ++p) {
    const double weight = std::exp(weights[p] - largest);
    total += weight;
    for (int64_t d = 0; d < attention.head_dim; ++d) sums[d] += weight * values[p][d];
  }
  for (int64_t d = 0; d < attention.head_dim; ++d)
    output[d] = RoundToDtype(static_cast<float>(sums[d] / total), stored);
}

void AttendRow(const PagedAttention<float>& attention, int64_t query, int64_t row, DeviceDtype stored) {
  for (int64_t head = 0; head < attention.num_kv_heads; ++head) {
    const int64_t count = int64_t{attention.positions[row]} + 1;
    const std::vector<const float*> keys = HeadsOf(attention, attention.key_pages, query, head, count);
    const std::vector<const float*> values = HeadsOf(attention, attention.value_pages, query, head, count);
    for (int64_t g = 0; g < attention.group_size; ++g) {
      const int64_t at = QueryHeadOffset(attention, row, head, g);
      Attend(attention, attention.queries + at, keys, values, stored, attention.output + at);
    }
  }
}

}  // namespace

void PagedAttentionReference(const PagedAttention<float>& attention, DeviceDtype stored) {
  for (int64_t query = 0; query < attention.num_queries; ++query) {
    for (int64_t row = attention.row_indptr[query]; row < attention.row_indptr[query + 1]; ++row) {
      AttendRow(attention, query, row, stored);
    }
  }
}

}  // namespace warpsmith
