// What requests to a RolloutService may hold, for those who make them and those who check them.
#ifndef WARPSMITH_PROTO_REQUEST_LIMITS_H_
#define WARPSMITH_PROTO_REQUEST_LIMITS_H_

namespace warpsmith {

// Samples of one GenerateGroupsRequest: its tasks times its num_samples.
inline constexpr int kRequestSamplesMax = 4096;
// Samples of one group, which cannot be split.
inline constexpr int kGroupSamplesMax = 256;

// Of trainer.grpo.sampling.answer_tokens_max, where a configuration does not say it: the worker checks that it fits
// its context.
inline constexpr int kAnswerTokensDefault = 512;

}  // namespace warpsmith

#endif  // WARPSMITH_PROTO_REQUEST_LIMITS_H_
