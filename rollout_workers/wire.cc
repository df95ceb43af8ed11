#include "rollout_workers/wire.h"

namespace warpsmith {
SamplingParameters SamplingFromProto(const v1::SamplingParameters& proto) {
  return {.temperature = proto.temperature(),
          .top_p = proto.top_p(),
          .top_k = proto.top_k(),
          .min_p = proto.min_p(),
          .answer_tokens_max = proto.answer_tokens_max()};
}

OfferedWeights OfferedWeightsFromProto(const v1::WeightsManifest& proto) {
  OfferedWeights weights{.policy_version = proto.policy_version(),
                         .transport = proto.transport(),
                         .path = proto.path(),
                         .dtype = proto.dtype(),
                         .layout_sha256 = proto.layout_sha256(),
                         .model_fields = {proto.model_fields().begin(), proto.model_fields().end()},
                         .place = {.id = proto.broadcast_group().unique_id(),
                                   .num_ranks = proto.broadcast_group().num_ranks(),
                                   .rank = proto.broadcast_group().rank()}};
  for (const v1::WeightsBuffer& buffer : proto.buffers()) {
    weights.buffers.push_back({.name = buffer.name(),
                               .offset_bytes = buffer.offset_bytes(),
                               .length_bytes = buffer.length_bytes(),
                               .sha256 = buffer.sha256(),
                               .checksum = buffer.checksum()});
  }
  return weights;
}

paged::EntriesOnChange EntriesOnChangeFromProto(v1::SamplesUnderWay proto) {
  if (proto == v1::SAMPLES_UNDER_WAY_KEEP) return paged::EntriesOnChange::kKeep;
  if (proto == v1::SAMPLES_UNDER_WAY_RECOMPUTE) return paged::EntriesOnChange::kRecompute;
  return paged::EntriesOnChange::kRequireNone;
}

SleepDepth SleepDepthFromProto(v1::SleepDepth proto) {
  return proto == v1::SLEEP_DEPTH_PAGES_AND_WEIGHTS ? SleepDepth::kPagesAndWeights : SleepDepth::kPages;
}

void FillTransition(const FinishedSample& sample, const std::vector<int32_t>& prompt_token_ids,
                    const std::string& answer, v1::Transition* transition) {
  transition->mutable_prompt_token_ids()->Assign(prompt_token_ids.begin(), prompt_token_ids.end());
  transition->mutable_answer_token_ids()->Assign(sample.answer_token_ids.begin(),
                                                 sample.answer_token_ids.end());
  transition->mutable_log_probs()->Assign(sample.log_probs.begin(), sample.log_probs.end());
  transition->set_seed(sample.seed);
  transition->set_policy_version(sample.policy_version);
  transition->mutable_token_policy_versions()->Assign(sample.token_policy_versions.begin(),
                                                      sample.token_policy_versions.end());
  transition->set_finish_reason(sample.finish_reason == FinishReason::kStop ? v1::FINISH_REASON_STOP
                                                                            : v1::FINISH_REASON_LENGTH);
  transition->set_answer(answer);
}

}  // namespace warpsmith
