#include "core/kernels/token_sampling_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/counter_random.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr float kInfinity = INFINITY;

// Samples of rows of random logits: sample i is of row i / 2, with slot i.
struct Arrays {
  Arrays(int64_t num_rows, int64_t size, int64_t stride)
      : size(size), stride(stride), logits(num_rows * stride) {
    for (int64_t i = 0; i < std::ssize(logits); ++i) {
      logits[i] = i % stride < size ? static_cast<float>(16 * UniformDouble(1, i) - 8) : kInfinity;
    }
    for (int32_t i = 0; i < 2 * num_rows; ++i) {
      rows.push_back(i / 2);
      slots.push_back(i);
      seeds.push_back(100 + i % 3);
      draws.push_back(static_cast<uint64_t>(i) << 33 | 5);
      temperatures.push_back(i % 5 == 4 ? 0.0f : 0.4f + 0.3f * static_cast<float>(i % 4));
    }
  }
  int64_t num_samples() const { return std::ssize(rows); }

  int64_t size, stride;
  std::vector<float> logits, temperatures;
  std::vector<int32_t> rows, slots;
  std::vector<uint64_t> seeds, draws;
};

struct Result {
  std::vector<int32_t> token_ids, last_tokens;
  std::vector<float> log_probs;
};

Result OnDevice(const Arrays& a) {
  const DeviceArray logits(a.logits), temperatures(a.temperatures),
      log_probs(std::vector<float>(a.num_samples()));
  const DeviceVector<int32_t> rows(a.rows), slots(a.slots), last(std::vector<int32_t>(a.num_samples(), -9));
  const DeviceVector<int32_t> tokens(std::vector<int32_t>(a.num_samples()));
  const DeviceVector<uint64_t> seeds(a.seeds), draws(a.draws);
  REQUIRE(LaunchTokenSamples(
              {a.num_samples(), a.size, a.stride, logits.get(), rows.get(), seeds.get(), draws.get(),
               temperatures.get(), slots.get(), last.get(), tokens.get(), log_probs.get()},
              nullptr) == cudaSuccess);
  return {tokens.Read(), last.Read(), log_probs.Read()};
}

Result OnHost(const Arrays& a) {
  Result r{std::vector<int32_t>(a.num_samples()), std::vector<int32_t>(a.num_samples()),
           std::vector<float>(a.num_samples())};
  TokenSamplesReference({a.num_samples(), a.size, a.stride, a.logits.data(), a.rows.data(), a.seeds.data(),
                         a.draws.data(), a.temperatures.data(), a.slots.data(), r.last_tokens.data(),
                         r.token_ids.data(), r.log_probs.data()});
  return r;
}

// How far the uniform number of a sample lies outside the interval of `token`, as a share of the whole; float64.
double Outside(const Arrays& a, int64_t sample, int32_t token) {
  const float* const logits = a.logits.data() + a.rows[sample] * a.stride;
  double before = 0, total = 0, own = 0;
  for (int64_t i = 0; i < a.size; ++i) {
    const double weight = std::exp((double{logits[i]} - 8) / a.temperatures[sample]);
    before += i < token ? weight : 0;
    own = i == token ? weight : own;
    total += weight;
  }
  const double target = UniformDouble(a.seeds[sample], a.draws[sample]);
  return std::max({before / total - target, target - (before + own) / total, 0.0});
}

TEST_CASE("drawn tokens are those whose intervals hold the uniform number, with their log-probs") {
  for (const int64_t size : {1, 31, 256, 257, 8191, 8193, 151669}) {
    const Arrays arrays(9, size, size + 3);
    const Result found = OnDevice(arrays), expected = OnHost(arrays);
    INFO(size << " token ids");
    CHECK(found.last_tokens == found.token_ids);
    for (int64_t i = 0; i < arrays.num_samples(); ++i) {
      const int32_t token = found.token_ids[i];
      REQUIRE((token >= 0 && token < size));
      if (arrays.temperatures[i] == 0) {
        CHECK(token == expected.token_ids[i]);
      } else {
        CHECK(Outside(arrays, i, token) <= 1e-5);  // float32 exponents of up to 40 and their sums
      }
      // Of the token of the device, whichever it is: a neighbour's row would be far off.
      if (token == expected.token_ids[i])
        CHECK(std::abs(found.log_probs[i] - expected.log_probs[i]) <= 2e-5f);
    }
  }
}

TEST_CASE("a sample alone has the bits that it has among others") {
  const Arrays all(40, 50000, 50000);
  const Result batch = OnDevice(all);
  for (const int64_t i : {0, 37, 78}) {
    Arrays one(1, 50000, 50000);
    one.logits.assign(all.logits.begin() + all.rows[i] * 50000,
                      all.logits.begin() + (all.rows[i] + 1) * 50000);
    one.rows = {0}, one.slots = {0}, one.seeds = {all.seeds[i]}, one.draws = {all.draws[i]};
    one.temperatures = {all.temperatures[i]};
    const Result alone = OnDevice(one);
    CHECK(alone.token_ids[0] == batch.token_ids[i]);
    CHECK(std::memcmp(&alone.log_probs[0], &batch.log_probs[i], sizeof(float)) == 0);
  }
}

TEST_CASE("of equal logits greedy takes the first, and a row that is no distribution has no token") {
  Arrays arrays(5, 1000, 1000);
  const auto row = [&](int64_t i) { return arrays.logits.begin() + i * 1000; };
  row(0)[700] = row(0)[130] = row(0)[999] = 9;
  row(1)[500] = NAN;
  row(2)[500] = kInfinity;
  std::fill_n(row(3), 1000, -kInfinity);
  for (int64_t i = 0; i < arrays.num_samples(); i += 2) arrays.temperatures[i] = 0;
  const Result found = OnDevice(arrays);
  CHECK(found.token_ids[0] == 130);
  for (int i = 2; i < 8; ++i) {
    CHECK(found.token_ids[i] == kNoToken);
    CHECK(std::isnan(found.log_probs[i]));
  }
  CHECK(found.token_ids[8] != kNoToken);
}

TEST_CASE("the smallest temperatures give the largest logit, with all of the probability") {
  Arrays arrays(4, 3000, 3001);
  const float smallest[] = {1e-30f, 3e-39f, 1e-40f, std::numeric_limits<float>::denorm_min()};
  for (int64_t i = 0; i < arrays.num_samples(); ++i) arrays.temperatures[i] = smallest[i / 2];
  const Result found = OnDevice(arrays);
  for (int64_t i = 0; i < arrays.num_samples(); ++i) {
    INFO("temperature " << arrays.temperatures[i]);
    const auto row = arrays.logits.begin() + arrays.rows[i] * arrays.stride;
    CHECK(found.token_ids[i] == std::max_element(row, row + arrays.size) - row);
    CHECK(found.log_probs[i] == 0);
  }
}

TEST_CASE("chunks of -infinity alone have no share, and the end of a row none of what lies behind") {
  Arrays arrays(3, 1500, 1600);
  for (int64_t row = 0; row < 3; ++row) {  // row r has its logits in chunk r alone
    const auto begin = arrays.logits.begin() + row * arrays.stride;
    std::fill(begin, begin + row * kSamplingChunk, -kInfinity);
    std::fill(begin + std::min<int64_t>((row + 1) * kSamplingChunk, 1500), begin + 1500, -kInfinity);
  }
  const Result found = OnDevice(arrays), expected = OnHost(arrays);
  for (int64_t i = 0; i < arrays.num_samples(); ++i) {
    CHECK(found.token_ids[i] / kSamplingChunk == arrays.rows[i]);
    CHECK(std::abs(found.log_probs[i] - expected.log_probs[i]) <= 2e-5f);
  }
}

TEST_CASE("sampling refuses rows of nothing and of too much, and takes no samples") {
  CHECK(LaunchTokenSamples({1, 0}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchTokenSamples({1, 2000000}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchTokenSamples({0, 8}, nullptr) == cudaSuccess);
}

TEST_CASE("the rates of 1, 8 and 64 samples of 151,936 logits") {
  const Arrays a(64, 151936, 151936);
  const DeviceArray logits(a.logits), temperatures(std::vector<float>(64, 1.0f)),
      log_probs(std::vector<float>(64));
  std::vector<int32_t> numbers(64);
  for (int32_t i = 0; i < 64; ++i) numbers[i] = i;
  const DeviceVector<int32_t> rows(numbers), last(numbers), tokens(numbers);
  const DeviceVector<uint64_t> seeds(a.seeds), draws(a.draws);
  for (const int64_t samples : {1, 8, 64}) {
    PrintRate((std::to_string(samples) + " samples").c_str(), samples * a.size * sizeof(float), [&] {
      return LaunchTokenSamples(
          {samples, a.size, a.stride, logits.get(), rows.get(), seeds.get(), draws.get(), temperatures.get(),
           rows.get(), last.get(), tokens.get(), log_probs.get()},
          nullptr);
    });
  }
}

}  // namespace
}  // namespace warpsmith
