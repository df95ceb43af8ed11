#include "trainer/update/policy_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace warpsmith {
namespace {

// k3 estimate of KL(p || q) from a sample of p: exp(q - p) - (q - p) - 1, never negative (Schulman 2020).
double K3(double log_p, double log_q) {
  const double difference = log_q - log_p;
  return std::expm1(difference) - difference;
}

constexpr double kBinsAnOctave = 8, kFirstOctave = -20;

int DifferenceBin(double difference) {
  const double place = kBinsAnOctave * (std::log2(difference) - kFirstOctave);  // -inf for 0
  if (std::isnan(place)) return kDifferenceBins - 1;
  return static_cast<int>(std::clamp(place, 0.0, static_cast<double>(kDifferenceBins - 1)));
}

}  // namespace

void PolicyLossSums::Add(const PolicyLossSums& other) {
  loss += other.loss;
  kl += other.kl;
  old_kl += other.old_kl;
  entropy += other.entropy;
  num_tokens += other.num_tokens;
  num_clipped += other.num_clipped;
  num_truncated += other.num_truncated;
  worker_difference += other.worker_difference;
  worker_difference_max = std::max(worker_difference_max, other.worker_difference_max);
  for (int bin = 0; bin < kDifferenceBins; ++bin) worker_differences[bin] += other.worker_differences[bin];
}

double PolicyLossSums::WorkerDifferenceP99() const {
  if (num_tokens == 0) return std::numeric_limits<double>::quiet_NaN();
  int64_t left = num_tokens - num_tokens / 100;
  int bin = 0;
  while (bin < kDifferenceBins - 1 && (left -= worker_differences[bin]) > 0) ++bin;
  if (bin == kDifferenceBins - 1) return worker_difference_max;
  return std::min(worker_difference_max, std::exp2((bin + 1) / kBinsAnOctave + kFirstOctave));
}

double AddToken(const TokenTerms& token, const PolicyLossOptions& options, int64_t global_num_tokens,
                PolicyLossSums& sums) {
  const double scale = 1.0 / static_cast<double>(global_num_tokens);
  const double ratio = std::exp(token.log_prob - token.old_log_prob);
  const double raw_weight = std::exp(token.old_log_prob - token.worker_log_prob);
  const double weight = std::min(raw_weight, options.weight_max);
  const double clamped = std::clamp(ratio, 1.0 - options.clip_low, 1.0 + options.clip_high);
  const double surrogate = std::min(ratio * token.advantage, clamped * token.advantage);
  const bool clipped = clamped * token.advantage < ratio * token.advantage;

  double loss = -weight * surrogate;
  double gradient = clipped ? 0.0 : -weight * token.advantage * ratio;
  if (options.kl_weight > 0) {
    const double kl = K3(token.log_prob, token.reference_log_prob);
    loss += options.kl_weight * kl;
    gradient -= options.kl_weight * std::expm1(token.reference_log_prob - token.log_prob);
    sums.kl += kl;
  }
  sums.loss += loss * scale;
  sums.old_kl += K3(token.old_log_prob, token.log_prob);
  sums.num_tokens += 1;
  sums.num_clipped += clipped ? 1 : 0;
  sums.num_truncated += raw_weight > options.weight_max ? 1 : 0;
  const double difference = std::abs(token.old_log_prob - token.worker_log_prob);
  sums.worker_difference += difference;
  sums.worker_difference_max = std::max(sums.worker_difference_max, difference);
  ++sums.worker_differences[DifferenceBin(difference)];
  return gradient * scale;
}

}  // namespace warpsmith
