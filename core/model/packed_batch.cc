#include "core/model/packed_batch.h"

#include <cstddef>

namespace warpsmith {

void PackedBatch::Append(const std::vector<int64_t>& sequence_tokens) {
  tokens.insert(tokens.end(), sequence_tokens.begin(), sequence_tokens.end());
  for (std::size_t i = 0; i < sequence_tokens.size(); ++i) positions.push_back(static_cast<int64_t>(i));
  cu_seqlens.push_back(num_tokens());
}

}  // namespace warpsmith
