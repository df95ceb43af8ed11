#include "core/kernels/top_tokens_cuda.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Two samples a row, one of them with fewer tokens; the last has none.
struct Case {
  Case(int64_t num_rows, int64_t num_ids, int64_t stride, const std::vector<float>& values)
      : rows(num_rows), ids(num_ids), logits_stride(stride), logits(values) {
    for (int64_t i = 0; i < 2 * rows; ++i) {
      logits_rows.push_back(static_cast<int32_t>(i / 2));
      temperatures.push_back(i % 3 == 0 ? 0.0F : 0.7F);
      counts.push_back(static_cast<int32_t>(std::min<int64_t>(i % 2 == 0 ? kTopTokensMax : i % 7, ids)));
      drawn.push_back(static_cast<int32_t>(UniformWord(5, i) % static_cast<uint64_t>(ids)));
      log_probs.push_back(-1.0F - static_cast<float>(i));
    }
    drawn.back() = -1;
  }

  TopTokens At(const float* logits_at, const int32_t* rows_at, const float* temperatures_at,
               const int32_t* counts_at, const int32_t* drawn_at, const float* log_probs_at,
               TokenLogProb* tops) const {
    return {std::ssize(counts), ids,       logits_stride, logits_at,    rows_at,
            temperatures_at,    counts_at, drawn_at,      log_probs_at, tops};
  }
  std::vector<TokenLogProb> Expected() const {
    std::vector<TokenLogProb> tops(counts.size() * kTopTokensMax, {-7, 0});
    TopTokensReference(At(logits.data(), logits_rows.data(), temperatures.data(), counts.data(), drawn.data(),
                          log_probs.data(), tops.data()));
    return tops;
  }
  std::vector<TokenLogProb> OnDevice() const {
    const DeviceVector<float> device_logits(logits), device_temperatures(temperatures),
        device_log_probs(log_probs);
    const DeviceVector<int32_t> device_rows(logits_rows), device_counts(counts), device_drawn(drawn);
    const DeviceVector<TokenLogProb> tops(std::vector<TokenLogProb>(counts.size() * kTopTokensMax, {-7, 0}));
    REQUIRE(LaunchTopTokens(At(device_logits.get(), device_rows.get(), device_temperatures.get(),
                               device_counts.get(), device_drawn.get(), device_log_probs.get(), tops.get()),
                            nullptr) == cudaSuccess);
    return tops.Read();
  }

  int64_t rows, ids, logits_stride;
  std::vector<float> logits;
  std::vector<int32_t> logits_rows, counts, drawn;
  std::vector<float> temperatures, log_probs;
};

void CheckAgrees(const Case& drawn) {
  const std::vector<TokenLogProb> expected = drawn.Expected(), found = drawn.OnDevice();
  REQUIRE(found.size() == expected.size());
  int num_others = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is_same =
        found[i].token_id == expected[i].token_id &&
        (found[i].log_prob == expected[i].log_prob ||
         std::abs(found[i].log_prob - expected[i].log_prob) <= 1e-5F * std::abs(expected[i].log_prob));
    if (!is_same) ++num_others;
  }
  CHECK(num_others == 0);
}

}  // namespace

TEST_CASE("the most probable tokens are those of the reference, in rows of all sizes") {
  for (const int64_t ids : {1, 19, 20, 511, 513, 5000, 151'669}) {
    INFO(ids << " ids");
    const int64_t rows = 5, stride = (ids + 3) / 4 * 4 + 4;
    CheckAgrees(Case(rows, ids, stride, RandomFloats(rows * stride, ids)));
  }
}

TEST_CASE("tokens whose logits are equal come by their ids, also where they are more than a block holds") {
  constexpr int64_t kIds = 20'000;
  std::vector<float> logits(2 * kIds);
  for (int64_t i = 0; i < kIds; ++i) logits[i] = static_cast<float>(UniformWord(1, i) % 3);
  std::fill(logits.begin() + kIds, logits.end(), -0.0F);  // all equal
  logits[kIds + 7] = 0.0F;
  CheckAgrees(Case(2, kIds, kIds, logits));
  // Nearly all ids have no probability at all.
  std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
  logits[3] = logits[kIds + 1000] = 1;
  Case few(2, kIds, kIds, logits);
  few.drawn = {3, 3, 1000, 1000};
  CheckAgrees(few);
}

TEST_CASE("the largest ids of one thread alone are found") {
  constexpr int64_t kIds = 60'000;
  std::vector<float> logits(kIds);
  for (int64_t i = 0; i < kIds; ++i)
    logits[i] = static_cast<float>(i % 512 == 5 ? 100 + i / 512 : UniformWord(2, i) % 50);
  CheckAgrees(Case(1, kIds, kIds, logits));
}

TEST_CASE("top tokens refuse rows that are too long, and take no samples") {
  CHECK(LaunchTopTokens({.num_samples = 1, .num_token_ids = 1'000'001}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchTopTokens({.num_samples = 0, .num_token_ids = 5}, nullptr) == cudaSuccess);
}

}  // namespace warpsmith
