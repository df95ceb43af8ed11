#include "rollout_workers/sampling_parameters.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/counter_random.h"
#include "core/base/sha256.h"
#include "core/kernels/top_tokens.h"

namespace warpsmith {
namespace {

// A smaller one would make logits infinite in float32.
constexpr double kTemperatureMin = 1e-30, kTemperatureMax = 100.0;

// The first 64 bits of the SHA-256 of `text`.
uint64_t Fingerprint(std::string_view text) {
  return std::stoull(Sha256Hex(text).substr(0, 16), nullptr, 16);
}

}  // namespace

absl::Status Validate(const SamplingParameters& parameters) {
  const double temperature = parameters.temperature;
  if (temperature != 0 && !(temperature >= kTemperatureMin && temperature <= kTemperatureMax)) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.temperature is ", temperature,
                                                   "; give 0 (greedy), or ", kTemperatureMin, " to ",
                                                   kTemperatureMax));
  }
  if (!(parameters.top_p > 0 && parameters.top_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_p is ", parameters.top_p, "; give a value over 0, 1 to switch it off"));
  }
  if (parameters.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_k is ", parameters.top_k, "; give 1 or more, 0 to switch it off"));
  }
  if (!(parameters.min_p >= 0 && parameters.min_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.min_p is ", parameters.min_p, "; give 0, which switches it off, to 1"));
  }
  if (parameters.answer_tokens_max < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.answer_tokens_max is ", parameters.answer_tokens_max, "; give 1 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckTopTokens(int num_top_tokens) {
  if (num_top_tokens >= 0 && num_top_tokens <= kTopTokensMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(num_top_tokens, " top tokens are asked for; give 0 to ", kTopTokensMax));
}

uint64_t SampleSeed(uint64_t request_seed, std::string_view task_id, int sample_index) {
  const uint64_t task_seed = UniformWord(request_seed, Fingerprint(task_id));
  return UniformWord(task_seed, static_cast<uint64_t>(sample_index));
}

}  // namespace warpsmith
