// What the engine is given and what it gives back: token ids only. Free of LibTorch and of protobuf.
#ifndef WARPSMITH_ROLLOUT_WORKERS_GENERATION_H_
#define WARPSMITH_ROLLOUT_WORKERS_GENERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/token_log_prob.h"
#include "rollout_workers/sampling_parameters.h"

namespace warpsmith {

// One answer that is wanted: its position in the group, and its seed (see SampleSeed).
struct WantedSample {
  int sample_index = 0;
  uint64_t seed = 0;
};

// One prompt and the samples wanted of it.
struct GenerationGroup {
  // Chosen by the caller, comes back with every sample.
  int task_index = 0;
  std::vector<int32_t> prompt_token_ids;
  std::vector<WantedSample> samples;
};

struct GenerationJob {
  // Chosen by the caller, unique among the jobs in the engine.
  int64_t id = 0;
  std::vector<GenerationGroup> groups;
  SamplingParameters sampling;
  // The version that must be loaded.
  uint64_t policy_version = 0;
  // Whether each token is told when it is drawn, and not only with its whole sample.
  bool reports_tokens = false;
  // So many of the most probable tokens are told beside each that is drawn: 0 to kTopTokensMax
  // (core/kernels/top_tokens.h), all ids that there are where they are fewer.
  int num_top_tokens = 0;
};

// A token of a sample that goes on, or whose last it is.
struct DrawnToken {
  int64_t job_id = 0;
  int task_index = 0;
  int sample_index = 0;
  int32_t token_id = 0;
  float log_prob = 0;
  // GenerationJob::num_top_tokens, in descending order, by the distribution that log_prob is of.
  std::vector<TokenLogProb> top_tokens;
};

enum class FinishReason { kStop, kLength };

struct FinishedSample {
  int64_t job_id = 0;
  int task_index = 0;
  int sample_index = 0;
  uint64_t seed = 0;
  // That was asked for.
  uint64_t policy_version = 0;
  // A stop token, where one ended the answer, is the last. One log-prob for each.
  std::vector<int32_t> answer_token_ids;
  std::vector<float> log_probs;
  // As DrawnToken has them, for each token; empty where the job wants none.
  std::vector<std::vector<TokenLogProb>> top_tokens;
  // Of the weights that drew each token. Empty where all are policy_version: others come only where new weights were
  // taken while the sample waited or decoded.
  std::vector<uint64_t> token_policy_versions;
  FinishReason finish_reason = FinishReason::kStop;
  // When the step that prefilled the prompt began, and when the last token was drawn.
  absl::Time started;
  absl::Time finished;
};

// A job that the engine had to give up; none of its samples follow.
struct FailedJob {
  int64_t job_id = 0;
  absl::Status status;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_GENERATION_H_
