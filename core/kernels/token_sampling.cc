#include "core/kernels/token_sampling.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr double kExponentMin = -87;

struct Sample {
  int32_t token_id = kNoToken;
  float log_prob = std::numeric_limits<float>::quiet_NaN();
};

Sample Draw(const float* logits, int64_t size, double temperature, double uniform) {
  const bool greedy = temperature == 0;
  if (greedy) temperature = 1;
  LargestLogit largest{-std::numeric_limits<float>::infinity(), 0};
  for (int64_t i = 0; i < size; ++i) largest = LargerOf(largest, {logits[i], static_cast<int32_t>(i)});
  std::vector<double> weights(size);
  double total = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double exponent = (double{logits[i]} - largest.value) / temperature;
    weights[i] = exponent < kExponentMin ? 0 : std::exp(exponent);
    total += weights[i];
  }
  if (!std::isfinite(largest.value) || !std::isfinite(total)) return {};
  const int32_t token =
      greedy ? largest.token_id
             : static_cast<int32_t>(IntervalOf(weights.data(), size, 0, uniform * total).index);
  return {token, static_cast<float>((double{logits[token]} - largest.value) / temperature - std::log(total))};
}

}  // namespace

void TokenSamplesReference(const TokenSamples& samples) {
  for (int64_t i = 0; i < samples.num_samples; ++i) {
    const Sample sample =
        Draw(samples.logits + samples.logits_rows[i] * samples.logits_stride, samples.num_token_ids,
             samples.temperatures[i], UniformDouble(samples.seeds[i], samples.draws[i]));
    samples.token_ids[i] = sample.token_id;
    samples.log_probs[i] = sample.log_prob;
    samples.last_tokens[samples.slots[i]] = sample.token_id;
  }
}

}  // namespace warpsmith
