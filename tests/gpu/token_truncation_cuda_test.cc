// Top-k, top-p and min-p of token_sampling_cuda.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/counter_random.h"
#include "core/kernels/token_sampling_cuda.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

struct Truncation {
  int32_t top_k;
  double top_p, min_p;
};

// `draws_of_rule` samples of row 0 for each rule, one rule after another.
struct Arrays {
  Arrays(std::vector<float> row, float temperature, const std::vector<Truncation>& rules, int draws_of_rule)
      : logits(std::move(row)) {
    for (const Truncation& rule : rules) {
      for (int i = 0; i < draws_of_rule; ++i) {
        slots.push_back(static_cast<int32_t>(slots.size()));
        draws.push_back(slots.size());
        top_ks.push_back(rule.top_k);
        top_ps.push_back(rule.top_p);
        min_ps.push_back(rule.min_p);
      }
    }
    rows.resize(slots.size());
    seeds.assign(slots.size(), 77);
    temperatures.assign(slots.size(), temperature);
  }
  int64_t num_samples() const { return std::ssize(slots); }
  int64_t size() const { return std::ssize(logits); }

  std::vector<float> logits, temperatures;
  std::vector<int32_t> rows, slots, top_ks;
  std::vector<uint64_t> seeds, draws;
  std::vector<double> top_ps, min_ps;
};

struct Result {
  std::vector<int32_t> token_ids, last_tokens;
  std::vector<float> log_probs;
};

// `says_rules`: with the arrays of top-k, top-p and min-p.
Result OnDevice(const Arrays& a, bool says_rules = true) {
  const DeviceArray logits(a.logits), temperatures(a.temperatures),
      log_probs(std::vector<float>(a.num_samples()));
  const DeviceVector<int32_t> rows(a.rows), slots(a.slots), last(a.slots), tokens(a.slots), top_ks(a.top_ks);
  const DeviceVector<uint64_t> seeds(a.seeds), draws(a.draws);
  const DeviceVector<double> top_ps(a.top_ps), min_ps(a.min_ps);
  REQUIRE(LaunchTokenSamples({a.num_samples(), a.size(), a.size(), logits.get(), rows.get(), seeds.get(),
                              draws.get(), temperatures.get(), slots.get(), last.get(), tokens.get(),
                              log_probs.get(), says_rules ? top_ks.get() : nullptr,
                              says_rules ? top_ps.get() : nullptr, says_rules ? min_ps.get() : nullptr},
                             nullptr) == cudaSuccess);
  return {tokens.Read(), last.Read(), log_probs.Read()};
}

Result OnHost(const Arrays& a) {
  Result r{a.slots, a.slots, a.temperatures};
  TokenSamplesReference({a.num_samples(), a.size(), a.size(), a.logits.data(), a.rows.data(), a.seeds.data(),
                         a.draws.data(), a.temperatures.data(), a.slots.data(), r.last_tokens.data(),
                         r.token_ids.data(), r.log_probs.data(), a.top_ks.data(), a.top_ps.data(),
                         a.min_ps.data()});
  return r;
}

// Whole numbers from 0 to -`levels`, so that many are equal.
std::vector<float> Levels(int64_t size, int levels) {
  std::vector<float> logits(size);
  for (int64_t i = 0; i < size; ++i)
    logits[i] = -std::floor(static_cast<float>(UniformDouble(3, i)) * levels);
  return logits;
}

std::vector<float> Spread(int64_t size, double width) {
  std::vector<float> logits(size);
  for (int64_t i = 0; i < size; ++i) logits[i] = static_cast<float>(width * UniformDouble(4, i) - 5);
  return logits;
}

// Few collected ids, many, and more than a block keeps.
std::vector<Truncation> Rules() {
  return {{1, 1, 0},      {20, 1, 0},     {20, 0.95, 0},     {20, 0.95, 0.1}, {500, 0.9, 0},  {700, 1, 0},
          {3000, 0.5, 0}, {0, 0.3, 0},    {0, 0.95, 0},      {0, 0.999, 0},   {0, 1, 0.2},    {0, 1, 1e-4},
          {0, 1, 1},      {0, 0.9, 0.01}, {100000, 0.99, 0}, {0, 1e-9, 0},    {512, 1, 1e-3}, {0, 1, 0}};
}

TEST_CASE("truncated rows give the reference's tokens") {
  constexpr int kDraws = 10;
  for (const int64_t size : {1, 40, 513, 5000, 40000}) {
    for (const auto& logits : {Levels(size, 12), Spread(size, 30), Spread(size, 4)}) {
      const Arrays arrays(logits, 0.9f, Rules(), kDraws);
      const Result found = OnDevice(arrays), expected = OnHost(arrays);
      CHECK(found.last_tokens == found.token_ids);
      // A number may be within rounding of an edge between two of tens of thousands of intervals.
      int differing = 0;
      for (int64_t i = 0; i < arrays.num_samples(); ++i) {
        INFO(size << " ids, top-k " << arrays.top_ks[i] << ", top-p " << arrays.top_ps[i] << ", min-p "
                  << arrays.min_ps[i]);
        if (found.token_ids[i] != expected.token_ids[i]) {
          ++differing;
          CHECK(size > 1000);
        } else {
          CHECK(std::abs(found.log_probs[i] - expected.log_probs[i]) <= 2e-5f);
        }
      }
      CHECK(differing <= arrays.num_samples() / 20);
    }
  }
}

TEST_CASE("a truncated sample alone has the bits that it has among others") {
  const Arrays all(Spread(40000, 12), 0.9f, Rules(), 3);
  const Result batch = OnDevice(all);
  for (const size_t i : {0, 7, 13, 20, 25, 29, 44}) {
    Arrays one(all.logits, 0.9f, {{all.top_ks[i], all.top_ps[i], all.min_ps[i]}}, 1);
    one.draws[0] = all.draws[i];
    const Result alone = OnDevice(one);
    CHECK(alone.token_ids[0] == batch.token_ids[i]);
    CHECK(std::memcmp(&alone.log_probs[0], &batch.log_probs[i], sizeof(float)) == 0);
  }
}

TEST_CASE(
    "a row that nothing narrows has the same bits among narrowed ones and where nothing can be narrowed") {
  Arrays mixed(Spread(40000, 12), 0.9f, {{0, 1, 0}, {20, 0.95, 0}, {0, 1, 0}, {0, 0.9, 0}}, 4);
  for (const size_t i : {0, 5, 9}) mixed.temperatures[i] = 0;
  const Result found = OnDevice(mixed), plain = OnDevice(mixed, false);
  for (const size_t i : {0, 1, 2, 3, 5, 8, 9, 10, 11}) {
    CHECK(found.token_ids[i] == plain.token_ids[i]);
    CHECK(std::memcmp(&found.log_probs[i], &plain.log_probs[i], sizeof(float)) == 0);
  }
}

TEST_CASE("a row that is no distribution has no token where it is truncated either") {
  std::vector<float> logits = Spread(1000, 4);
  logits[500] = NAN;
  const Result found = OnDevice({logits, 1.0f, {{20, 0.95, 0}, {0, 1, 0.1}}, 1});
  CHECK(found.token_ids == std::vector<int32_t>{kNoToken, kNoToken});
}

TEST_CASE("the rate of 64 truncated samples of 151,936 logits") {
  constexpr int64_t kSize = 151936;
  struct Rule {
    const char* name;
    Truncation truncation;
    double width;  // logits are as far apart: how flat the distribution is
  };
  for (const Rule& rule : {Rule{"64 samples that may be narrowed and are not", {0, 1, 0}, 30},
                           {"64 samples, top-k 20 and top-p 0.95", {20, 0.95, 0}, 30},
                           {"64 samples, top-p 0.95, peaked", {0, 0.95, 0}, 10000},
                           {"64 samples, top-p 0.95, of thousands", {0, 0.95, 0}, 1000},
                           {"64 samples, top-p 0.95, flat", {0, 0.95, 0}, 3},
                           {"64 samples, min-p 0.05", {0, 1, 0.05}, 30}}) {
    Arrays a(Spread(kSize, rule.width), 1.0f, {rule.truncation}, 64);
    a.logits.resize(64 * kSize);
    for (int64_t i = kSize; i < std::ssize(a.logits); ++i) a.logits[i] = a.logits[i - kSize];
    const DeviceArray logits(a.logits), temperatures(a.temperatures), log_probs(a.temperatures);
    const DeviceVector<int32_t> rows(a.slots), slots(a.slots), last(a.slots), tokens(a.slots),
        top_ks(a.top_ks);
    const DeviceVector<uint64_t> seeds(a.seeds), draws(a.draws);
    const DeviceVector<double> top_ps(a.top_ps), min_ps(a.min_ps);
    PrintRate(rule.name, a.logits.size() * sizeof(float), [&] {
      return LaunchTokenSamples(
          {64, kSize, kSize, logits.get(), rows.get(), seeds.get(), draws.get(), temperatures.get(),
           slots.get(), last.get(), tokens.get(), log_probs.get(), top_ks.get(), top_ps.get(), min_ps.get()},
          nullptr);
    });
  }
}

}  // namespace
}  // namespace warpsmith
