#include "rollout_workers/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/base/counter_random.h"
#include "core/kernels/token_sampling.h"
#include "tests/support/catch.h"
#include "tests/support/sampling_definition.h"

namespace warpsmith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits spread like a language model's: a few likely tokens, a long tail.
std::vector<float> SomeLogits(int size, uint64_t seed) {
  std::vector<float> logits(size);
  for (int i = 0; i < size; ++i) {
    logits[i] = static_cast<float>(-4.0 * std::log(UniformDouble(seed, i) + 1e-9) - 3.0);
  }
  return logits;
}

std::vector<int> Histogram(const std::vector<float>& logits, const SamplingParameters& parameters,
                           int draws) {
  Sampler sampler(static_cast<int>(logits.size()));
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[sampler.Draw(logits, parameters, UniformDouble(7, i))->token_id];
  return counts;
}

// Chi-square of `counts` against `probability`, tokens expected under 5 times pooled, as (value - freedom) in
// units of its standard deviation.
double ChiSquareDeviations(const std::vector<int>& counts, const std::vector<double>& probability,
                           int draws) {
  double chi_square = 0;
  double pooled_expected = 0;
  double pooled_count = 0;
  int cells = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probability[i] * draws;
    if (expected >= 5) {
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
      ++cells;
    } else {
      pooled_expected += expected;
      pooled_count += counts[i];
    }
  }
  if (pooled_expected > 0) {
    chi_square += (pooled_count - pooled_expected) * (pooled_count - pooled_expected) / pooled_expected;
    ++cells;
  }
  return cells < 2 ? 0 : (chi_square - (cells - 1)) / std::sqrt(2.0 * (cells - 1));
}

}  // namespace

TEST_CASE("draws follow the truncated softmax for every combination of temperature, top-k, top-p and min-p") {
  constexpr int kDraws = 40000;
  for (const int size : {5, 64, 768, 1031}) {
    const std::vector<float> logits = SomeLogits(size, size);
    for (const SamplingParameters parameters :
         {SamplingParameters{}, SamplingParameters{.temperature = 0.6}, SamplingParameters{.top_k = 4},
          SamplingParameters{.top_p = 0.9}, SamplingParameters{.min_p = 0.05},
          SamplingParameters{.temperature = 0.9, .top_p = 0.95, .top_k = 20},
          SamplingParameters{.temperature = 1.2, .top_p = 0.95, .top_k = 30, .min_p = 0.1}}) {
      const std::vector<double> expected = SampleProbabilities(logits, parameters);
      const std::vector<int> counts = Histogram(logits, parameters, kDraws);
      CAPTURE(size, parameters.temperature, parameters.top_k, parameters.top_p, parameters.min_p);
      for (int i = 0; i < size; ++i) {
        if (expected[i] == 0) CHECK(counts[i] == 0);
      }
      CHECK(ChiSquareDeviations(counts, expected, kDraws) < 5);
    }
  }
}

TEST_CASE("the token is the one whose interval holds the uniform number, but for rounding") {
  // 1,031 weights, each within 3e-7 of the exact one.
  constexpr double kRounding = 1e-6;
  const std::vector<float> logits = SomeLogits(1031, 5);
  Sampler sampler(1031);
  for (const SamplingParameters parameters :
       {SamplingParameters{}, SamplingParameters{.temperature = 0.7, .top_k = 40},
        SamplingParameters{.top_p = 0.8}, SamplingParameters{.top_p = 0.9, .min_p = 0.02},
        SamplingParameters{.temperature = 1.5, .min_p = 0.1}}) {
    const std::vector<TokenInterval> intervals = SampleIntervals(logits, parameters);
    for (int i = 0; i < 500; ++i) {
      const double uniform = UniformDouble(9, i);
      const int32_t token_id = sampler.Draw(logits, parameters, uniform)->token_id;
      CAPTURE(uniform, token_id, parameters.top_k, parameters.top_p, parameters.min_p);
      CHECK(DistanceToInterval(intervals, token_id, uniform) < kRounding);
    }
  }
}

TEST_CASE("the log-prob is of the whole softmax at the temperature, whatever was cut off") {
  const std::vector<float> logits = SomeLogits(768, 3);
  Sampler sampler(768);
  for (const SamplingParameters parameters :
       {SamplingParameters{.temperature = 0.7, .top_p = 0.5, .top_k = 3},
        SamplingParameters{.temperature = 0.7}}) {
    const std::vector<double> whole = SampleProbabilities(logits, {.temperature = 0.7});
    for (int i = 0; i < 50; ++i) {
      const SampledToken token = *sampler.Draw(logits, parameters, UniformDouble(1, i));
      CHECK(token.log_prob == Approx(std::log(whole[token.token_id])).margin(2e-6));
    }
  }
}

TEST_CASE("greedy takes the largest logit, and of equal ones the lowest id") {
  Sampler sampler(40);
  std::vector<float> logits(40, 1.0F);
  logits[17] = logits[33] = 2.0F;
  const SampledToken token = *sampler.Draw(logits, {.temperature = 0}, 0.99);
  CHECK(token.token_id == 17);
  CHECK(token.log_prob == Approx(2 - std::log(2 * std::exp(2.0) + 38 * std::exp(1.0))).margin(1e-6));
}

TEST_CASE("ties at the edge of top-k all stay") {
  const std::vector<float> logits = {3, 2, 2, 2, 1};
  const std::vector<int> counts = Histogram(logits, {.top_k = 2}, 4000);
  CHECK(counts[4] == 0);
  for (const int i : {0, 1, 2, 3}) CHECK(counts[i] > 0);
}

TEST_CASE("min-p keeps what is at least so many times as probable as the first, and always the first") {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const std::vector<int> two = Histogram(logits, {.min_p = 0.5}, 4000);
  CHECK(two[1] > 0);
  CHECK(two[2] == 0);
  CHECK(Histogram(logits, {.min_p = 1}, 100) == std::vector<int>{100, 0, 0});
  // After top-p, of all tokens: the nucleus of 0.6 is the first two, though min-p would leave the first alone.
  const std::vector<int> first = Histogram(logits, {.top_p = 0.6, .min_p = 0.7}, 100);
  CHECK(first == std::vector<int>{100, 0, 0});
}

TEST_CASE("min-p is at the temperature") {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  // At temperature 2 the last is 0.63 times as probable as the first, at 1 it is 0.4 times.
  CHECK(Histogram(logits, {.temperature = 2, .min_p = 0.5}, 4000)[2] > 0);
  CHECK(Histogram(logits, {.temperature = 1, .min_p = 0.5}, 4000)[2] == 0);
}

TEST_CASE("top-p keeps at least one token and no token after the mass is reached") {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const std::vector<int> tiny = Histogram(logits, {.top_p = 1e-9}, 100);
  CHECK(tiny == std::vector<int>{100, 0, 0});
  const std::vector<int> more = Histogram(logits, {.top_p = 0.6}, 4000);
  CHECK(more[1] > 0);
  CHECK(more[2] == 0);
}

TEST_CASE("equal probabilities at the edge of top-p are cut by token id") {
  const std::vector<int> counts = Histogram(std::vector<float>(4, 0.5F), {.top_p = 0.5}, 4000);
  CHECK(counts[0] > 0);
  CHECK(counts[1] > 0);
  CHECK(counts[2] + counts[3] == 0);
}

TEST_CASE("the ends of the unit interval draw possible tokens") {
  std::vector<float> logits(600, -kInfinity);
  logits[3] = 0;
  logits[300] = 1;
  Sampler sampler(600);
  CHECK(sampler.Draw(logits, {}, 0.0)->token_id == 3);
  CHECK(sampler.Draw(logits, {}, std::nextafter(1.0, 0.0))->token_id == 300);
  CHECK(sampler.Draw(logits, {.top_p = 0.999}, std::nextafter(1.0, 0.0))->token_id == 3);
}

TEST_CASE("top-k over the vocabulary and a vocabulary of one are no truncation") {
  Sampler sampler(1);
  const SampledToken only = *sampler.Draw(std::vector<float>{5}, {.top_p = 0.5, .top_k = 9}, 0.7);
  CHECK(only.token_id == 0);
  CHECK(only.log_prob == 0);
}

TEST_CASE("logits that are no numbers give nothing") {
  Sampler sampler(300);
  std::vector<float> logits(300, 0.0F);
  logits[299] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(sampler.Draw(logits, {}, 0.5).has_value());
  logits[299] = kInfinity;
  CHECK_FALSE(sampler.Draw(logits, {}, 0.5).has_value());
  logits.assign(300, -kInfinity);
  CHECK_FALSE(sampler.Draw(logits, {.temperature = 0}, 0.5).has_value());
}

TEST_CASE("a draw depends on its row alone, not on what the sampler drew before") {
  const std::vector<float> logits = SomeLogits(1000, 11);
  const SamplingParameters parameters = {.temperature = 0.8, .top_p = 0.9, .top_k = 50};
  Sampler used(1000);
  for (int i = 0; i < 20; ++i) used.Draw(SomeLogits(1000, i), {}, UniformDouble(2, i));
  Sampler fresh(1000);
  const SampledToken a = *used.Draw(logits, parameters, 0.314);
  const SampledToken b = *fresh.Draw(logits, parameters, 0.314);
  CHECK(a.token_id == b.token_id);
  CHECK(a.log_prob == b.log_prob);
}

TEST_CASE("what a device's samples are held against draws the sampler's tokens, truncated or not") {
  const std::vector<SamplingParameters> all = {{.temperature = 0},
                                               {.temperature = 0.7},
                                               {},
                                               {.temperature = 0.9, .top_p = 0.95, .top_k = 20},
                                               {.temperature = 1.3, .top_p = 0.8},
                                               {.top_k = 7},
                                               {.temperature = 0.8, .min_p = 0.05},
                                               {.top_p = 0.9, .top_k = 300, .min_p = 0.01},
                                               {.temperature = 0, .top_k = 3}};
  for (const int size : {1, 300, 5000}) {
    std::vector<float> logits = SomeLogits(size, 5);
    for (int i = 1; i < size; i += 3) logits[i] = logits[i - 1];  // ties
    Sampler sampler(size);
    for (const SamplingParameters& parameters : all) {
      INFO(size << " ids, temperature " << parameters.temperature << ", top-k " << parameters.top_k
                << ", top-p " << parameters.top_p << ", min-p " << parameters.min_p);
      for (uint64_t draw = 0; draw < 200; ++draw) {
        const uint64_t seed = 11;
        const auto temperature = static_cast<float>(parameters.temperature);
        const int32_t zero = 0, top_k = parameters.top_k;
        int32_t token = -7, last_token = -7;
        float log_prob = 0;
        TokenSamplesReference({1, size, size, logits.data(), &zero, &seed, &draw, &temperature, &zero,
                               &last_token, &token, &log_prob, &top_k, &parameters.top_p, &parameters.min_p});
        const auto drawn = sampler.Draw(logits, parameters, UniformDouble(seed, draw));
        REQUIRE(token == drawn->token_id);  // no number of this seed is within rounding of an edge
        REQUIRE(last_token == token);
        REQUIRE(log_prob == Approx(drawn->log_prob).margin(2e-6));
      }
    }
  }
}

TEST_CASE("top tokens have the log-probs that each would have had if it had been drawn") {
  const std::vector<float> logits = {0.5F, -1, 3, 3, 2, -7, 1};
  for (const double temperature : {0.0, 0.6, 1.0}) {
    SamplingParameters parameters;
    parameters.temperature = temperature;
    Sampler sampler(7);
    std::map<int32_t, float> drawn;
    std::optional<SampledToken> last;
    for (int i = 0; i < 200; ++i) {
      last = sampler.Draw(logits, parameters, UniformDouble(1, i));
      drawn[last->token_id] = last->log_prob;
    }
    const std::vector<TokenLogProb> top = TopTokensOf(logits, temperature, *last, 20);
    REQUIRE(top.size() == 7);
    const std::vector<int32_t> order = {2, 3, 4, 6, 0, 1, 5};
    for (size_t i = 0; i < top.size(); ++i) {
      CHECK(top[i].token_id == order[i]);
      if (drawn.contains(top[i].token_id))
        CHECK(top[i].log_prob == Approx(drawn[top[i].token_id]).margin(1e-5));
    }
  }
}

}  // namespace warpsmith
