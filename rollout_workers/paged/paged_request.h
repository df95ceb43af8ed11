// What a PagedBatch is given and gives back: token ids only.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_REQUEST_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_REQUEST_H_

#include <cstdint>
#include <vector>

#include "core/base/token_log_prob.h"

namespace warpsmith::paged {

// How a device samples: valid parameters of rollout_workers/sampling_parameters.h. The thresholds stay double and
// the temperature is float, because the CPU's sampler computes with these.
struct TokenSampling {
  double top_p = 1;
  double min_p = 0;
  float temperature = 1;
  int32_t top_k = 0;
};

// A group: one prompt, and as many answers as there are seeds.
struct PagedRequest {
  // Chosen by the caller, unique among the requests in the batch.
  int64_t id = 0;
  std::vector<int32_t> prompt_token_ids;
  std::vector<uint64_t> seeds;
  TokenSampling sampling;
  // An answer ends here at the latest; at least 1.
  int answer_tokens_max = 1;
  // Most probable tokens that are wanted beside each that is sampled.
  int num_top_tokens = 0;
};

// What a device has sampled. A row whose logits were no numbers has kNoToken.
inline constexpr int32_t kNoToken = -1;
struct TokenResult {
  int32_t token_id = kNoToken;
  float log_prob = 0;
  std::vector<TokenLogProb> top_tokens;  // SampleRow::num_top_tokens
};

// A new token of an answer, in the order of the answer.
struct AnswerToken {
  int64_t request_id = 0;
  int sample_index = 0;
  int32_t token_id = 0;
  float log_prob = 0;
  // Of the weights that sampled it.
  uint64_t policy_version = 0;
  std::vector<TokenLogProb> top_tokens;
};

enum class AnswerEnd { kStopToken, kLength, kFinishedEarly };

// A whole answer. The arrays have one element a token, top_tokens none where the request wants none; a stop token is
// the last.
struct FinishedAnswer {
  int64_t request_id = 0;
  int sample_index = 0;
  uint64_t seed = 0;
  std::vector<int32_t> token_ids;
  std::vector<float> log_probs;
  std::vector<uint64_t> policy_versions;
  std::vector<std::vector<TokenLogProb>> top_tokens;
  AnswerEnd end = AnswerEnd::kStopToken;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_REQUEST_H_
