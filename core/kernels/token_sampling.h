// Draws a token from each row of logits and scores it: contract, the parts that host and device share, and the
// reference on a CPU.
//
// With z = logits / temperature, m = max z, w = exp(z - m) (0 below exp(-87)) and u the uniform number of the sample's
// seed and draw (counter_random.h), ids lie one after another on [0, sum w), each as long as its w:
//   token = the id whose interval holds u sum w, or the first id of the largest logit at temperature 0
//   log_prob = z[token] - m - log sum w, with temperature 1 where it is 0
// Truncation keeps some of the ids, one rule after another, and the token is drawn from these by their w; the log-prob
// stays that of all. With ids in descending order of their logits, equal ones in ascending order of ids:
//   top-k  those whose logit is at least the k-th of the order
//   top-p  of these, those before which less than top_p of their sum w comes
//   min-p  of these, those with w >= min_p
// Where top-p is on, the ids that are kept lie on [0, sum w) in that order.
// Sums are made in chunks of kSamplingChunk ids, so that a row's token depends on that row alone.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_H_
#define WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_H_

#include <cstdint>

namespace warpsmith {

// A row with a NaN, +infinity, or -infinity alone has no token: kNoToken, with NaN as its log-prob.
inline constexpr int32_t kNoToken = -1;
inline constexpr int kSamplingChunk = 512;

// All arrays are dense.
struct TokenSamples {
  int64_t num_samples = 0;
  int64_t num_token_ids = 0;             // of a row: those that the tokenizer has
  int64_t logits_stride = 0;             // elements from row to row
  const float* logits = nullptr;         // [rows, logits_stride]
  const int32_t* logits_rows = nullptr;  // [num_samples] several samples may be of one row
  const uint64_t* seeds = nullptr;       // [num_samples]
  const uint64_t* draws = nullptr;       // [num_samples] index of the token in its answer
  const float* temperatures = nullptr;   // [num_samples] at least 0
  const int32_t* slots = nullptr;        // [num_samples]
  int32_t* last_tokens = nullptr;        // [slots] the sample's token goes to its slot as well
  int32_t* token_ids = nullptr;          // [num_samples]
  float* log_probs = nullptr;            // [num_samples]
  const int32_t* top_ks = nullptr;       // [num_samples] at least 0, which is off; null: all off
  const double* top_ps = nullptr;        // [num_samples] over 0 to 1, which is off; null: all off
  const double* min_ps = nullptr;        // [num_samples] 0, which is off, to 1; null: all off
};

// Where `target` falls among intervals that lie one after another.
struct SampledInterval {
  int64_t index = -1;  // -1: none
  double start = 0;
};

// The last of `count` intervals that has a length and starts at or before `target`; the first starts at `start`. So the
// end of a distribution stands for what rounding puts behind it.
template <typename Length>
constexpr SampledInterval IntervalOf(const Length* lengths, int64_t count, double start, double target) {
  SampledInterval found;
  for (int64_t i = 0; i < count && start <= target; ++i) {
    if (lengths[i] > 0) found = {i, start};
    start += static_cast<double>(lengths[i]);
  }
  return found;
}

// Sums in float64.
void TokenSamplesReference(const TokenSamples& samples);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_H_
