#include "rollout_workers/softmax_weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

// Builds for wider vectors as well and picks one when the program is loaded. Sanitizers run before the choice
// can be made, so they see the plain build.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WS_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WS_VECTOR_CLONES
#endif

namespace warpsmith {
namespace {

constexpr int kNumLanes = 16;
constexpr float kExponentMin = -87.0F;  // below, exp leaves the normal numbers of float32

// exp(x) for x <= 0: x = n ln 2 + r, |r| <= ln 2 / 2, and exp(r) by the polynomial of Cephes' expf.c.
// Branch-free, so that loops over it become vector code; a NaN stays one.
inline float ExpOfNonPositive(float x) {
  constexpr float kRound = 0x1.8p23F;  // adding and subtracting it rounds to an integer
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const auto exponent = (std::bit_cast<uint32_t>(shifted) + 127U) << 23;  // the low bits of `shifted` are n
  return x < kExponentMin ? 0.0F : p * std::bit_cast<float>(exponent);
}

}  // namespace

WS_VECTOR_CLONES float LargestOf(absl::Span<const float> values) {
  float lanes[kNumLanes];
  std::fill_n(lanes, kNumLanes, -std::numeric_limits<float>::infinity());
  const float* const data = values.data();
  const size_t whole = values.size() / kNumLanes * kNumLanes;
  for (size_t i = 0; i < whole; i += kNumLanes) {
    for (int lane = 0; lane < kNumLanes; ++lane) {
      lanes[lane] = data[i + lane] > lanes[lane] ? data[i + lane] : lanes[lane];
    }
  }
  for (size_t i = whole; i < values.size(); ++i) lanes[0] = data[i] > lanes[0] ? data[i] : lanes[0];
  return *std::max_element(lanes, lanes + kNumLanes);
}

WS_VECTOR_CLONES double SoftmaxWeights(absl::Span<const float> logits, float largest, float temperature,
                                       absl::Span<float> weights, absl::Span<double> block_sums) {
  const float offset = largest / temperature;
  double total = 0;
  for (size_t block = 0; block * kSoftmaxBlock < logits.size(); ++block) {
    const size_t begin = block * kSoftmaxBlock;
    const size_t length = std::min<size_t>(kSoftmaxBlock, logits.size() - begin);
    const float* const in = logits.data() + begin;
    float* const out = weights.data() + begin;
    for (size_t i = 0; i < length; ++i) out[i] = ExpOfNonPositive(in[i] / temperature - offset);
    float lanes[kNumLanes] = {};
    const size_t whole = length / kNumLanes * kNumLanes;
    for (size_t i = 0; i < whole; i += kNumLanes) {
      for (int lane = 0; lane < kNumLanes; ++lane) lanes[lane] += out[i + lane];
    }
    double sum = 0;
    for (const float lane : lanes) sum += lane;
    for (size_t i = whole; i < length; ++i) sum += out[i];
    block_sums[block] = sum;
    total += sum;
  }
  return total;
}

}  // namespace warpsmith
