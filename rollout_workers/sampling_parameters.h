// How answers are drawn, and the seeds that make every draw repeatable.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SAMPLING_PARAMETERS_H_
#define WARPSMITH_ROLLOUT_WORKERS_SAMPLING_PARAMETERS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace warpsmith {

// Applied in the order of Hugging Face's generate(): temperature, top-k, top-p, min-p.
struct SamplingParameters {
  // Logits are divided by this, 1e-30 or more; 0 is greedy: the largest logit, of equal ones the lowest token id.
  double temperature = 1.0;
  // Nucleus: in descending order of probability, a token stays while those before it weigh less than this. 1:
  // off.
  double top_p = 1.0;
  // Tokens whose logit is at least the k-th largest stay, so ties at the edge all do. 0: off.
  int top_k = 0;
  // Tokens at least this many times as probable as the most probable one stay. 0: off; 1: only that one.
  double min_p = 0.0;
  // An answer ends here at the latest; at least 1.
  int answer_tokens_max = 1;
};

// INVALID_ARGUMENT naming the field, its value and the range it has to lie in.
absl::Status Validate(const SamplingParameters& parameters);

// INVALID_ARGUMENT unless so many most probable tokens can be told beside each: 0 to kTopTokensMax
// (core/kernels/top_tokens.h).
absl::Status CheckTopTokens(int num_top_tokens);

// Seed of sample `sample_index` of task `task_id`: a function of these three alone, so that neither the other
// tasks of a request nor their order changes an answer.
uint64_t SampleSeed(uint64_t request_seed, std::string_view task_id, int sample_index);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_SAMPLING_PARAMETERS_H_
