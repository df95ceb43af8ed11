// Whatever a rollout worker sends, the update is given only what its kernels can take.
#include <cmath>

#include "core/base/check.h"
#include "tests/fuzz/fuzz_input.h"
#include "trainer/workers/wire.h"

namespace {

constexpr warpsmith::TransitionLimits kLimits = {.vocab_size = 100, .positions_max = 6};

void CheckTokens(const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) WS_CHECK(id >= 0 && id < kLimits.vocab_size) << id;
}

void CheckTransition(const warpsmith::Transition& transition, int answer_tokens_max) {
  CheckTokens(transition.prompt_token_ids);
  CheckTokens(transition.answer_token_ids);
  const size_t num_tokens = transition.prompt_token_ids.size() + transition.answer_token_ids.size();
  WS_CHECK(num_tokens <= kLimits.positions_max);
  WS_CHECK(transition.answer_token_ids.size() <= static_cast<size_t>(answer_tokens_max));
  WS_CHECK(transition.log_probs.size() == transition.answer_token_ids.size());
  for (const float log_prob : transition.log_probs) WS_CHECK(log_prob <= 1e-4f && std::isfinite(log_prob));
  WS_CHECK(!transition.grade.scored() || !transition.prompt_token_ids.empty());
  WS_CHECK(!transition.grade.scored() || transition.malformed.empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const warpsmith::GenerateRequest request{.id = "r",
                                           .tasks = {{.id = "a"}},
                                           .num_samples = 2,
                                           .sampling = {.answer_tokens_max = 3},
                                           .policy_version = 4};
  warpsmith::v1::TransitionGroup wire;
  if (!wire.ParseFromArray(bytes, static_cast<int>(num_bytes))) return 0;
  const auto group = warpsmith::GroupFromWire(wire, request.tasks[0], request, kLimits);
  if (!group.ok()) return 0;
  WS_CHECK(group->task.id == "a");
  WS_CHECK(group->transitions.size() == 2);
  for (int i = 0; i < 2; ++i) {
    WS_CHECK(group->transitions[i].sample_index == i);
    CheckTransition(group->transitions[i], request.sampling.answer_tokens_max);
  }
  return 0;
}
