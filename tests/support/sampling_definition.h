// The definition of sampling in float64 and by a full sort: the judge of every sampler.
#ifndef WARPSMITH_TESTS_SUPPORT_SAMPLING_DEFINITION_H_
#define WARPSMITH_TESTS_SUPPORT_SAMPLING_DEFINITION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rollout_workers/sampling_parameters.h"

namespace warpsmith {

// The token is sampled where begin <= uniform < end.
struct TokenInterval {
  int32_t token_id = 0;
  double begin = 0;
  double end = 0;
};

// Of all tokens that are not cut off, in the order of the cumulative distribution: together [0, 1). Finite
// logits, a temperature over 0.
std::vector<TokenInterval> SampleIntervals(absl::Span<const float> logits,
                                           const SamplingParameters& parameters);

// Probability of each token, 0 for those cut off.
std::vector<double> SampleProbabilities(absl::Span<const float> logits, const SamplingParameters& parameters);

// How far `uniform` is from the interval of `token_id`: 0 inside, 1 for a token that is cut off. A sampler in float32
// is right if this is within its rounding.
double DistanceToInterval(const std::vector<TokenInterval>& intervals, int32_t token_id, double uniform);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SAMPLING_DEFINITION_H_
