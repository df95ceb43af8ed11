#include "tests/support/sampling_definition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace warpsmith {

std::vector<TokenInterval> SampleIntervals(absl::Span<const float> logits,
                                           const SamplingParameters& parameters) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const double largest = logits[order.front()];
  const auto weight = [&](int32_t token_id) {
    return std::exp((logits[token_id] - largest) / parameters.temperature);
  };
  if (parameters.top_k > 0 && parameters.top_k < std::ssize(order)) {
    const float edge = logits[order[parameters.top_k - 1]];
    std::erase_if(order, [&](int32_t token_id) { return logits[token_id] < edge; });
  }
  const auto sum = [&] {
    return std::accumulate(order.begin(), order.end(), 0.0,
                           [&](double total, int32_t token_id) { return total + weight(token_id); });
  };
  const double nucleus = parameters.top_p * sum();
  double before = 0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || parameters.top_p == 1 || before < nucleus)) {
    before += weight(order[kept++]);
  }
  order.resize(kept);
  std::erase_if(order, [&](int32_t token_id) { return weight(token_id) < parameters.min_p; });
  const double total = sum();
  if (parameters.top_p == 1) std::sort(order.begin(), order.end());
  std::vector<TokenInterval> intervals;
  double begin = 0;
  for (const int32_t token_id : order) {
    const double end = begin + weight(token_id) / total;
    intervals.push_back({.token_id = token_id, .begin = begin, .end = end});
    begin = end;
  }
  return intervals;
}

std::vector<double> SampleProbabilities(absl::Span<const float> logits,
                                        const SamplingParameters& parameters) {
  std::vector<double> probabilities(logits.size());
  for (const TokenInterval& interval : SampleIntervals(logits, parameters)) {
    probabilities[interval.token_id] = interval.end - interval.begin;
  }
  return probabilities;
}

double DistanceToInterval(const std::vector<TokenInterval>& intervals, int32_t token_id, double uniform) {
  const auto interval = std::find_if(intervals.begin(), intervals.end(),
                                     [&](const auto& other) { return other.token_id == token_id; });
  if (interval == intervals.end()) return 1;
  return std::max({0.0, interval->begin - uniform, uniform - interval->end});
}

}  // namespace warpsmith
