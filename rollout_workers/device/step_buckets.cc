#include "rollout_workers/device/step_buckets.h"

namespace warpsmith::device {
namespace {

int StepBehind(int bucket) {
  if (bucket < 8) return bucket;
  if (bucket < 64) return 8;
  return bucket < 256 ? 16 : 32;
}

}  // namespace

std::vector<int> DecodeBuckets(int sequences_max) {
  std::vector<int> buckets;
  for (int bucket = 1; bucket < sequences_max; bucket += StepBehind(bucket)) buckets.push_back(bucket);
  buckets.push_back(sequences_max);
  return buckets;
}

std::vector<int64_t> RowBuckets(absl::Span<const int> decode_buckets, int64_t rows_max,
                                bool batch_invariant) {
  if (batch_invariant) return {rows_max};
  std::vector<int64_t> buckets(decode_buckets.begin(), decode_buckets.end());
  for (int64_t rows = 1; rows < rows_max; rows *= 2) {
    if (buckets.empty() || rows > buckets.back()) buckets.push_back(rows);
  }
  if (buckets.empty() || rows_max > buckets.back()) buckets.push_back(rows_max);
  return buckets;
}

}  // namespace warpsmith::device
