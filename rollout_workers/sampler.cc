#include "rollout_workers/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/check.h"
#include "core/kernels/log_softmax.h"
#include "core/kernels/top_tokens.h"
#include "rollout_workers/softmax_weights.h"

namespace warpsmith {

Sampler::Sampler(int vocabulary_size)
    : weights_(vocabulary_size), block_sums_((vocabulary_size + kSoftmaxBlock - 1) / kSoftmaxBlock) {
  candidates_.reserve(vocabulary_size);
  largest_.reserve(vocabulary_size);
}

std::optional<SampledToken> Sampler::Draw(absl::Span<const float> logits,
                                          const SamplingParameters& parameters, double uniform) {
  WS_CHECK(logits.size() == weights_.size())
      << logits.size() << " logits for " << weights_.size() << " tokens";
  const float largest = LargestOf(logits);
  if (!std::isfinite(largest)) return std::nullopt;
  const bool greedy = parameters.temperature == 0;
  const float temperature = greedy ? 1.0F : static_cast<float>(parameters.temperature);
  const double total =
      SoftmaxWeights(logits, largest, temperature, absl::MakeSpan(weights_), absl::MakeSpan(block_sums_));
  if (!std::isfinite(total)) return std::nullopt;

  const bool truncated = parameters.top_p < 1 || parameters.min_p > 0 ||
                         (parameters.top_k > 0 && parameters.top_k < std::ssize(weights_));
  SampledToken token;
  if (greedy) {
    token.token_id = static_cast<int32_t>(std::find(logits.begin(), logits.end(), largest) - logits.begin());
  } else if (truncated) {
    token.token_id = ChooseTruncated(logits, parameters, uniform);
  } else {
    token.token_id = ChooseFromAll(uniform, total);
  }
  token.log_prob = ScoreToken(logits.data(), std::ssize(logits), token.token_id, temperature).log_prob;
  return token;
}

int32_t Sampler::ChooseFromAll(double uniform, double total) const {
  double remaining = uniform * total;
  size_t block = 0;
  while (block + 1 < block_sums_.size() && remaining >= block_sums_[block]) remaining -= block_sums_[block++];
  const size_t begin = block * kSoftmaxBlock;
  const size_t end = std::min(begin + kSoftmaxBlock, weights_.size());
  size_t last_possible = weights_.size();
  for (size_t i = begin; i < end; ++i) {
    if (weights_[i] == 0) continue;
    if (remaining < weights_[i]) return static_cast<int32_t>(i);
    remaining -= weights_[i];
    last_possible = i;
  }
  if (last_possible < weights_.size()) return static_cast<int32_t>(last_possible);
  // Rounding ran past the last block with any weight: its last token stands for the end of the distribution.
  const auto last = std::find_if(weights_.rbegin(), weights_.rend(), [](float weight) { return weight > 0; });
  return static_cast<int32_t>(weights_.rend() - last - 1);
}

int32_t Sampler::ChooseTruncated(absl::Span<const float> logits, const SamplingParameters& parameters,
                                 double uniform) {
  if (parameters.top_k > 0 && parameters.top_k < std::ssize(weights_)) {
    CollectTopK(logits, parameters.top_k);
  } else {
    CollectAll();
  }
  if (parameters.top_p < 1) KeepNucleus(parameters.top_p);
  // The most probable token weighs 1.
  if (parameters.min_p > 0) {
    std::erase_if(candidates_,
                  [&](const Candidate& candidate) { return candidate.weight < parameters.min_p; });
  }
  double remaining = 0;
  for (const Candidate& candidate : candidates_) remaining += candidate.weight;
  remaining *= uniform;
  for (const Candidate& candidate : candidates_) {
    if (remaining < candidate.weight) return candidate.token_id;
    remaining -= candidate.weight;
  }
  return candidates_.back().token_id;
}

void Sampler::CollectTopK(absl::Span<const float> logits, int top_k) {
  largest_.assign(logits.begin(), logits.begin() + top_k);
  std::make_heap(largest_.begin(), largest_.end(), std::greater<>());
  for (const float logit : logits.subspan(top_k)) {
    if (logit <= largest_.front()) continue;
    std::pop_heap(largest_.begin(), largest_.end(), std::greater<>());
    largest_.back() = logit;
    std::push_heap(largest_.begin(), largest_.end(), std::greater<>());
  }
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= largest_.front() && weights_[i] > 0)
      candidates_.push_back({weights_[i], static_cast<int32_t>(i)});
  }
}

void Sampler::CollectAll() {
  candidates_.clear();
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] > 0) candidates_.push_back({weights_[i], static_cast<int32_t>(i)});
  }
}

void Sampler::KeepNucleus(double top_p) {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // What is lighter than an equal share of 1 - top_p weighs less than that in all, so everything heavier
  // comes before it and weighs more than top_p: it cannot be in the nucleus and need not be sorted.
  const double floor = (1 - top_p) * total / static_cast<double>(candidates_.size());
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < floor; });
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token_id < b.token_id;
  });
  double before = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || before < top_p * total))
    before += candidates_[kept++].weight;
  candidates_.resize(kept);
}

std::vector<TokenLogProb> TopTokensOf(absl::Span<const float> logits, double temperature,
                                      const SampledToken& drawn, int count) {
  const auto temperature_f = static_cast<float>(temperature);
  const int32_t row = 0, counted = std::min(count, static_cast<int>(logits.size()));
  std::vector<TokenLogProb> tops(kTopTokensMax);
  TopTokensReference({.num_samples = 1,
                      .num_token_ids = std::ssize(logits),
                      .logits_stride = std::ssize(logits),
                      .logits = logits.data(),
                      .logits_rows = &row,
                      .temperatures = &temperature_f,
                      .counts = &counted,
                      .token_ids = &drawn.token_id,
                      .log_probs = &drawn.log_prob,
                      .tops = tops.data()});
  tops.resize(counted);
  return tops;
}

}  // namespace warpsmith
