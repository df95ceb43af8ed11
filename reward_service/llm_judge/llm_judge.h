// The optional second opinion on a rubric: what is sent to a language model, what counts as its answer, and
// how little that may change.
#ifndef WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_JUDGE_H_
#define WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_JUDGE_H_

#include <array>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reward_service/llm_judge/llm_prompt.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

struct LlmScore {
  int score = 0;       // 1 to 5
  std::string reason;  // escaped to ASCII, at most kLlmReasonBytesMax bytes
};
constexpr size_t kLlmReasonBytesMax = 240;

// In the order of kLlmDimensions. With a `failure`, in words, there are no scores.
struct LlmOpinion {
  std::array<LlmScore, 4> scores;
  std::string failure;
};
constexpr std::array<const char*, 4> kLlmDimensions = {"anti_hacking", "engineering", "operator_coverage",
                                                       "skill_compliance"};

// How an endpoint is asked to keep to the form of the reply; endpoints differ in what they understand.
enum class LlmReplyFormat { kNone, kJsonObject, kJsonSchema };

// The body of a request to /v1/chat/completions, in JSON: temperature 0 and a fixed seed. `attempt` counts
// from 0; a later one has another seed and says that the earlier reply could not be used.
std::string LlmRequestBody(const LlmMessages& messages, const std::string& model, LlmReplyFormat format,
                           int attempt);

// The opinion in the body of a chat completion. INVALID_ARGUMENT, saying which, for everything that is not
// one complete JSON object of exactly the four dimensions, each with an integer score of 1 to 5 and a reason,
// no key twice and nothing around it.
absl::StatusOr<LlmOpinion> ParseLlmReply(std::string_view body);

// Writes `opinion` into a rubric of the tables. Each score becomes the lesser of both: an opinion lowers and
// never lifts. One that failed changes no score. `source` says what was done.
void LowerRubric(const LlmOpinion& opinion, v1::Rubric* rubric);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_JUDGE_H_
