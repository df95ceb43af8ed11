#include "core/kernels/token_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/counter_random.h"
#include "core/kernels/log_softmax.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("a target falls into the interval that holds it, its start included and its end not") {
  const double lengths[] = {2, 0, 3, 0, 1};
  for (const auto& [target, index, start] : {std::tuple{0.0, 0, 0.0},
                                             {1.9, 0, 0.0},
                                             {2.0, 2, 2.0},
                                             {4.9, 2, 2.0},
                                             {5.0, 4, 5.0},
                                             {6.0, 4, 5.0},
                                             {7.0, 4, 5.0}}) {
    INFO(target);
    const SampledInterval found = IntervalOf(lengths, 5, 0, target);
    CHECK(found.index == index);
    CHECK(found.start == start);
  }
  CHECK(IntervalOf(lengths, 5, 10, 11.5).index == 0);
  CHECK(IntervalOf(lengths, 5, 10, 9.0).index == -1);
  CHECK(IntervalOf(lengths + 1, 1, 0, 0.0).index == -1);
  CHECK(IntervalOf(lengths, 0, 0, 0.0).index == -1);
}

TEST_CASE("intervals before the first with a length are no place for target 0") {
  const double lengths[] = {0, 0, 4, 5};
  CHECK(IntervalOf(lengths, 4, 0, 0.0).index == 2);
}

// A walk by 32 lanes with a share of the intervals each, as a warp makes it: the last lane that finds one has it.
SampledInterval IntervalOfLanes(const std::vector<double>& lengths, double target) {
  const int64_t size = std::ssize(lengths), per_lane = (size + 31) / 32;
  SampledInterval found;
  double before = 0;
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t first = std::min(lane * per_lane, size), count = std::min(per_lane, size - first);
    SampledInterval mine = IntervalOf(lengths.data() + first, count, before, target);
    if (mine.index >= 0) found = {first + mine.index, mine.start};
    for (int64_t i = 0; i < count; ++i) before += lengths[first + i];
  }
  return found;
}

TEST_CASE("lanes with a share each find what one walk finds, for any number of intervals") {
  for (const int64_t size : {1, 31, 32, 33, 256, 594}) {
    std::vector<double> lengths(size);
    double total = 0;
    for (int64_t i = 0; i < size; ++i) {  // whole numbers, so that sums are exact in any order
      lengths[i] = std::floor(5 * UniformDouble(7, i));
      total += lengths[i];
    }
    for (int64_t draw = 0; draw < 200; ++draw) {
      const double target = UniformDouble(8, draw) * total;
      const SampledInterval walked = IntervalOf(lengths.data(), size, 0, target);
      const SampledInterval found = IntervalOfLanes(lengths, target);
      REQUIRE(found.index == walked.index);
      REQUIRE(found.start == walked.start);
    }
  }
}

// One sample a row, each with a slot of its own behind the first.
struct Samples {
  Samples(std::vector<float> all, int64_t size, float temperature, int64_t num_draws)
      : logits(std::move(all)), temperatures(num_draws, temperature), rows(num_draws), seeds(num_draws, 3) {
    for (int64_t i = 0; i < num_draws; ++i) {
      draws.push_back(i);
      slots.push_back(static_cast<int32_t>(i + 1));
    }
    last_tokens.resize(num_draws + 1);
    token_ids.resize(num_draws);
    log_probs.resize(num_draws);
    TokenSamplesReference({num_draws, size, size, logits.data(), rows.data(), seeds.data(), draws.data(),
                           temperatures.data(), slots.data(), last_tokens.data(), token_ids.data(),
                           log_probs.data()});
  }

  std::vector<float> logits, temperatures, log_probs;
  std::vector<int32_t> rows, slots, last_tokens, token_ids;
  std::vector<uint64_t> seeds, draws;
};

TEST_CASE("tokens come as often as their probability says, and their log-prob is the trainer's") {
  const std::vector<float> logits = {0, 1, -kInfinity, 2};
  constexpr int64_t kDraws = 4000;
  const Samples samples(logits, 4, 0.5f, kDraws);
  std::vector<int> counts(4);
  for (int64_t i = 0; i < kDraws; ++i) {
    ++counts.at(samples.token_ids[i]);
    const float expected = ScoreToken(logits.data(), 4, samples.token_ids[i], 0.5f).log_prob;
    REQUIRE(samples.log_probs[i] == Approx(expected).margin(1e-6));
    REQUIRE(samples.last_tokens[i + 1] == samples.token_ids[i]);
  }
  const double total = 1 + std::exp(2.0) + std::exp(4.0);
  CHECK(counts[2] == 0);
  CHECK(counts[0] == Approx(kDraws / total).margin(40));  // 5 deviations
  CHECK(counts[1] == Approx(kDraws * std::exp(2.0) / total).margin(105));
}

TEST_CASE("temperature 0 takes the first of the largest, with the log-prob of temperature 1") {
  const Samples samples({1, 3, 3, -2}, 4, 0, 2);
  const float expected = ScoreToken(samples.logits.data(), 4, 1, 1.0f).log_prob;
  for (int i = 0; i < 2; ++i) {
    CHECK(samples.token_ids[i] == 1);
    CHECK(samples.log_probs[i] == Approx(expected).margin(1e-6));
  }
}

// The ids that a truncated row can give, each with how often it came in `num_draws`.
std::map<int32_t, int> Drawn(const std::vector<float>& logits, int32_t top_k, double top_p, double min_p,
                             int64_t num_draws = 500) {
  std::map<int32_t, int> counts;
  const auto size = static_cast<int64_t>(logits.size());
  const float temperature = 1;
  const uint64_t seed = 9;
  const int32_t zero = 0;
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(num_draws); ++draw) {
    int32_t token = -7, last_token = -7;
    float log_prob = 0;
    TokenSamplesReference({1, size, size, logits.data(), &zero, &seed, &draw, &temperature, &zero,
                           &last_token, &token, &log_prob, &top_k, &top_p, &min_p});
    CHECK(log_prob == Approx(ScoreToken(logits.data(), size, token, 1.0f).log_prob).margin(1e-6));
    ++counts[token];
  }
  return counts;
}

std::vector<int32_t> IdsOf(const std::map<int32_t, int>& counts) {
  std::vector<int32_t> ids;
  for (const auto& [id, count] : counts) ids.push_back(id);
  return ids;
}

TEST_CASE("truncation keeps what its rule says, ties included where the rule has them") {
  const std::vector<float> logits = {0, 2, 1, 1, -kInfinity, 2};
  using Ids = std::vector<int32_t>;
  CHECK(IdsOf(Drawn(logits, 0, 1, 0)) == Ids{0, 1, 2, 3, 5});
  CHECK(IdsOf(Drawn(logits, 1, 1, 0)) == Ids{1, 5});           // both of the largest
  CHECK(IdsOf(Drawn(logits, 3, 1, 0)) == Ids{1, 2, 3, 5});     // the third and who equals it
  CHECK(IdsOf(Drawn(logits, 6, 1, 0)) == Ids{0, 1, 2, 3, 5});  // all: no truncation
  CHECK(IdsOf(Drawn(logits, 0, 0.1, 0)) == Ids{1});            // of equals the first
  CHECK(IdsOf(Drawn(logits, 2, 0.5, 0)) == Ids{1});            // half is reached by the first alone
  CHECK(IdsOf(Drawn(logits, 2, 0.51, 0)) == Ids{1, 5});
  CHECK(IdsOf(Drawn(logits, 0, 1, 0.3)) == Ids{1, 2, 3, 5});  // exp(-1) is over 0.3, exp(-2) is not
  CHECK(IdsOf(Drawn(logits, 0, 1, 1)) == Ids{1, 5});
  CHECK(IdsOf(Drawn(logits, 3, 0.9, 0.5)) == Ids{1, 5});
}

TEST_CASE("kept ids come as often as their probability among them says") {
  constexpr int kDraws = 4000;
  auto counts =
      Drawn({0, 2, 1, 1, -kInfinity, 2}, 0, 0.6, 0, kDraws);  // 1 and 5 together weigh over 0.6 of all
  CHECK(IdsOf(counts) == std::vector<int32_t>{1, 5});
  CHECK(counts[1] == Approx(kDraws / 2.0).margin(160));  // 5 deviations
}

TEST_CASE("a row that is no distribution has no token") {
  for (const std::vector<float>& logits : {std::vector<float>{1, NAN, 2},
                                           {1, kInfinity, 2},
                                           {-kInfinity, -kInfinity, -kInfinity},
                                           {NAN, NAN, NAN}}) {
    for (const float temperature : {0.0f, 1.0f}) {
      const Samples samples(logits, 3, temperature, 1);
      CHECK(samples.token_ids[0] == kNoToken);
      CHECK(samples.last_tokens[1] == kNoToken);
      CHECK(std::isnan(samples.log_probs[0]));
    }
  }
}

}  // namespace
}  // namespace warpsmith
