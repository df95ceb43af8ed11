// Sizes of steps that are prepared for.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BUCKETS_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace warpsmith::device {

// Batch sizes of CUDA graphs: 1, 2, 4, then multiples of 8 to 64, of 16 to 256 and of 32 beyond; the last is
// `sequences_max`, at least 1. So 512 sequences need 31 graphs, and padding adds less than a quarter from 64 rows on;
// below, a step takes as long as reading the weights does.
std::vector<int> DecodeBuckets(int sequences_max);

// Row counts of which each has its own algorithm for products: a bucket for each of `decode_buckets`, and powers of two
// behind them up to `rows_max`; with `batch_invariant` rows_max alone.
std::vector<int64_t> RowBuckets(absl::Span<const int> decode_buckets, int64_t rows_max, bool batch_invariant);

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BUCKETS_H_
