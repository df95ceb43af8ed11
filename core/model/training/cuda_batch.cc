#include "core/model/training/cuda_batch.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/kernels/training/embedding_gradient.h"
#include "core/model/cuda_status.h"

namespace warpsmith {

void CudaBatch::Begin(const ScoredBatch& batch, bool sorts, int64_t vocab_size, int64_t num_token_ids) {
  batch_ = &batch;
  sorts_ = sorts;
  scored_rows_.clear();
  for (int64_t i = 0; i < num_tokens(); ++i) {
    const int64_t token = packed().tokens[i], target = batch.targets[i];
    WS_CHECK(token >= 0 && token < vocab_size) << "token " << token << " of a vocabulary of " << vocab_size;
    WS_CHECK(target < num_token_ids) << "target " << target << " of a vocabulary of " << num_token_ids;
    if (target >= 0) scored_rows_.push_back(static_cast<int32_t>(i));
  }
}

void CudaBatch::Place(DeviceArena& arena) {
  indices_.tokens = arena.Take<int32_t>(7 * num_tokens() + 2 * num_scored() + packed().num_sequences() + 2);
}

absl::Status CudaBatch::Upload(cudaStream_t stream) {
  std::vector<int32_t> all;
  const auto append = [&](const auto& values) {
    int32_t* const at = indices_.tokens + all.size();
    for (const auto value : values) all.push_back(static_cast<int32_t>(value));
    return at;
  };
  std::vector<int32_t> targets, places(num_tokens(), static_cast<int32_t>(num_scored()));
  for (int64_t i = 0; i < num_scored(); ++i) {
    targets.push_back(static_cast<int32_t>(batch_->targets[scored_rows_[i]]));
    places[scored_rows_[i]] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> entries(num_tokens());
  std::iota(entries.begin(), entries.end(), 0);
  append(packed().tokens);
  indices_.entries = append(entries);
  indices_.positions = append(packed().positions);
  indices_.cu_seqlens = append(packed().cu_seqlens);
  indices_.rows = append(scored_rows_);
  indices_.targets = append(targets);
  indices_.places = append(places);
  if (sorts_) {
    const RowsByToken sorted = SortByToken(packed().tokens);
    num_sorted_tokens_ = static_cast<int64_t>(sorted.tokens.size());
    indices_.sorted_tokens = append(sorted.tokens);
    indices_.sorted_indptr = append(sorted.indptr);
    indices_.sorted_rows = append(sorted.rows);
  }
  return CudaStatus(cudaMemcpyAsync(indices_.tokens, all.data(), all.size() * sizeof(int32_t),
                                    cudaMemcpyHostToDevice, stream),
                    "copying a batch's indices");
}

int64_t CudaBatch::longest() const {
  int64_t longest = 0;
  for (int64_t b = 0; b < packed().num_sequences(); ++b) {
    longest = std::max(longest, packed().cu_seqlens[b + 1] - packed().cu_seqlens[b]);
  }
  return longest;
}

int64_t CudaBatch::position_max() const {
  const std::vector<int64_t>& positions = packed().positions;
  return positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end());
}

}  // namespace warpsmith
