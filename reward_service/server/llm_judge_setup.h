// From the configuration of the LLM judge to the stage that asks it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_LLM_JUDGE_SETUP_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_LLM_JUDGE_SETUP_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "reward_service/grading/llm_stage.h"
#include "reward_service/grading/metrics.h"
#include "reward_service/llm_judge/llm_client.h"
#include "reward_service/server/options.h"

namespace warpsmith {

// The stage uses the client. All empty where no judge is configured.
struct LlmJudgeMachinery {
  std::unique_ptr<LlmClient> client;
  std::unique_ptr<LlmStage> stage;
  // Of Environment.llm_judge, and so a part of what cache keys are made of.
  std::string name;
};

// `shipped_prompt` is the template where the options name none; `metrics` must outlive the result.
// INVALID_ARGUMENT, with the key of the run file, for files that cannot be read or used and for a bad URL.
absl::StatusOr<LlmJudgeMachinery> SetUpLlmJudge(const LlmJudgeOptions& options,
                                                const std::filesystem::path& shipped_prompt,
                                                Metrics* metrics);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_LLM_JUDGE_SETUP_H_
