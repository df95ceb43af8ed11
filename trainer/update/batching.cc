#include "trainer/update/batching.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"

namespace warpsmith {

std::vector<SequenceIndices> AssignToRanks(const std::vector<int64_t>& lengths, int num_ranks) {
  WS_CHECK(num_ranks > 0);
  SequenceIndices order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return lengths[a] > lengths[b]; });

  std::vector<SequenceIndices> ranks(num_ranks);
  std::vector<int64_t> loads(num_ranks, 0);
  for (const int index : order) {
    const auto lightest = std::min_element(loads.begin(), loads.end());
    *lightest += lengths[index];
    ranks[lightest - loads.begin()].push_back(index);
  }
  for (SequenceIndices& indices : ranks) std::sort(indices.begin(), indices.end());
  return ranks;
}

std::vector<SequenceIndices> PackMicroBatches(const std::vector<int64_t>& lengths,
                                              const SequenceIndices& indices, int64_t tokens_max) {
  std::vector<SequenceIndices> batches;
  int64_t num_tokens = 0;
  for (const int index : indices) {
    if (batches.empty() || num_tokens + lengths[index] > tokens_max) {
      batches.emplace_back();
      num_tokens = 0;
    }
    batches.back().push_back(index);
    num_tokens += lengths[index];
  }
  return batches;
}

std::vector<SequenceIndices> SplitEvenly(int count, int num_parts) {
  WS_CHECK(num_parts > 0);
  std::vector<SequenceIndices> parts;
  for (int part = 0, next = 0; part < num_parts; ++part) {
    const int size = count / num_parts + (part < count % num_parts ? 1 : 0);
    if (size == 0) continue;
    SequenceIndices& indices = parts.emplace_back(size);
    std::iota(indices.begin(), indices.end(), next);
    next += size;
  }
  return parts;
}

}  // namespace warpsmith
