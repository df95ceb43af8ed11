#include "core/kernels/token_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr double kExponentMin = -87;

struct Sample {
  int32_t token_id = kNoToken;
  float log_prob = std::numeric_limits<float>::quiet_NaN();
};

struct Truncation {
  int64_t top_k;  // 0: off
  double top_p;   // 1: off
  double min_p;   // 0: off
};

// In descending order of logits, of equal ones in ascending order.
std::vector<int32_t> OrderedIds(const float* logits, int64_t size) {
  std::vector<int32_t> ids(size);
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  return ids;
}

// How many of the ordered ids of top-k stay for top-p: at least one.
int64_t NucleusSize(const std::vector<int32_t>& ids, int64_t size, const std::vector<double>& weights,
                    double top_p) {
  double total = 0, before = 0;
  for (int64_t i = 0; i < size; ++i) total += weights[ids[i]];
  int64_t kept = 0;
  while (kept < size && (kept == 0 || before < top_p * total)) before += weights[ids[kept++]];
  return kept;
}

int32_t DrawTruncated(const float* logits, const std::vector<double>& weights, const Truncation& truncation,
                      double uniform) {
  std::vector<int32_t> ids = OrderedIds(logits, std::ssize(weights));
  int64_t kept = std::ssize(ids);
  if (truncation.top_k > 0) {
    const float least = logits[ids[truncation.top_k - 1]];
    kept = std::partition_point(ids.begin(), ids.end(), [&](int32_t id) { return logits[id] >= least; }) -
           ids.begin();
  }
  if (truncation.top_p < 1) kept = NucleusSize(ids, kept, weights, truncation.top_p);
  while (kept > 1 && weights[ids[kept - 1]] < truncation.min_p) --kept;
  ids.resize(kept);
  if (truncation.top_p >= 1) std::sort(ids.begin(), ids.end());
  std::vector<double> kept_weights;
  for (const int32_t id : ids) kept_weights.push_back(weights[id]);
  const double total = std::accumulate(kept_weights.begin(), kept_weights.end(), 0.0);
  return ids[IntervalOf(kept_weights.data(), kept, 0, uniform * total).index];
}

Sample Draw(const float* logits, int64_t size, double temperature, const Truncation& truncation,
            double uniform) {
  const bool greedy = temperature == 0;
  if (greedy) temperature = 1;
  // The first of equal ones; NaNs are passed over.
  float largest = -std::numeric_limits<float>::infinity();
  int32_t token = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (logits[i] > largest) largest = logits[i], token = static_cast<int32_t>(i);
  }
  std::vector<double> weights(size);
  double total = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double exponent = (double{logits[i]} - largest) / temperature;
    weights[i] = exponent < kExponentMin ? 0 : std::exp(exponent);
    total += weights[i];
  }
  if (!std::isfinite(largest) || !std::isfinite(total)) return {};
  const bool truncated = truncation.top_k > 0 || truncation.top_p < 1 || truncation.min_p > 0;
  if (!greedy && truncated) token = DrawTruncated(logits, weights, truncation, uniform);
  if (!greedy && !truncated) {
    token = static_cast<int32_t>(IntervalOf(weights.data(), size, 0, uniform * total).index);
  }
  return {token, static_cast<float>((double{logits[token]} - largest) / temperature - std::log(total))};
}

Truncation TruncationOf(const TokenSamples& samples, int64_t i) {
  const int64_t top_k = samples.top_ks == nullptr ? 0 : samples.top_ks[i];
  return {top_k < samples.num_token_ids ? top_k : 0, samples.top_ps == nullptr ? 1 : samples.top_ps[i],
          samples.min_ps == nullptr ? 0 : samples.min_ps[i]};
}

}  // namespace

void TokenSamplesReference(const TokenSamples& samples) {
  for (int64_t i = 0; i < samples.num_samples; ++i) {
    const Sample sample = Draw(samples.logits + samples.logits_rows[i] * samples.logits_stride,
                               samples.num_token_ids, samples.temperatures[i], TruncationOf(samples, i),
                               UniformDouble(samples.seeds[i], samples.draws[i]));
    samples.token_ids[i] = sample.token_id;
    samples.log_probs[i] = sample.log_prob;
    samples.last_tokens[samples.slots[i]] = sample.token_id;
  }
}

}  // namespace warpsmith
