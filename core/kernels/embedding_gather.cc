#include "core/kernels/embedding_gather.h"

#include <algorithm>
#include <limits>

namespace warpsmith {

void EmbeddingGatherReference(const EmbeddingGather<float>& gather) {
  for (int64_t row = 0; row < gather.rows; ++row) {
    const int32_t token = TokenOfRow(gather, row);
    float* const to = gather.x + row * gather.size;
    if (token < 0 || token >= gather.num_tokens) {
      std::fill_n(to, gather.size, std::numeric_limits<float>::quiet_NaN());
    } else {
      std::copy_n(gather.embedding + token * gather.size, gather.size, to);
    }
  }
}

}  // namespace warpsmith
