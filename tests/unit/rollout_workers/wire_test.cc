#include "rollout_workers/wire.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a manifest keeps every field of every buffer") {
  v1::WeightsManifest proto;
  proto.set_policy_version(3);
  proto.set_path("/tmp/w");
  proto.set_dtype("float32");
  proto.set_transport("cuda_memory");
  proto.set_layout_sha256("l");
  (*proto.mutable_model_fields())["rope_theta"] = "5000.0";
  proto.mutable_broadcast_group()->set_unique_id("unique");
  proto.mutable_broadcast_group()->set_num_ranks(3);
  proto.mutable_broadcast_group()->set_rank(2);
  v1::WeightsBuffer& buffer = *proto.add_buffers();
  buffer.set_name("layers.0");
  buffer.set_offset_bytes(64);
  buffer.set_length_bytes(128);
  buffer.set_sha256("s");
  buffer.set_checksum("c");
  const OfferedWeights weights = OfferedWeightsFromProto(proto);
  CHECK(weights.policy_version == 3);
  CHECK(weights.path == "/tmp/w");
  CHECK(weights.dtype == "float32");
  CHECK(weights.layout_sha256 == "l");
  CHECK(weights.model_fields == std::map<std::string, std::string>{{"rope_theta", "5000.0"}});
  REQUIRE(weights.buffers.size() == 1);
  CHECK(weights.buffers[0].name == "layers.0");
  CHECK(weights.buffers[0].offset_bytes == 64);
  CHECK(weights.buffers[0].length_bytes == 128);
  CHECK(weights.buffers[0].sha256 == "s");
  CHECK(weights.buffers[0].checksum == "c");
  CHECK(weights.transport == "cuda_memory");
  CHECK(weights.place.id == "unique");
  CHECK(weights.place.num_ranks == 3);
  CHECK(weights.place.rank == 2);
  CHECK(SleepDepthFromProto(v1::SLEEP_DEPTH_PAGES_AND_WEIGHTS) == SleepDepth::kPagesAndWeights);
  CHECK(SleepDepthFromProto(v1::SLEEP_DEPTH_UNSPECIFIED) == SleepDepth::kPages);
}

TEST_CASE("samples under way end first unless a commit says otherwise") {
  CHECK(EntriesOnChangeFromProto(v1::SAMPLES_UNDER_WAY_UNSPECIFIED) == paged::EntriesOnChange::kRequireNone);
  CHECK(EntriesOnChangeFromProto(v1::SAMPLES_UNDER_WAY_END) == paged::EntriesOnChange::kRequireNone);
  CHECK(EntriesOnChangeFromProto(v1::SAMPLES_UNDER_WAY_KEEP) == paged::EntriesOnChange::kKeep);
  CHECK(EntriesOnChangeFromProto(v1::SAMPLES_UNDER_WAY_RECOMPUTE) == paged::EntriesOnChange::kRecompute);
}

TEST_CASE("sampling parameters keep every field, and those that are absent are off") {
  v1::SamplingParameters proto;
  CHECK(SamplingFromProto(proto).min_p == 0);
  proto.set_temperature(0.7);
  proto.set_top_p(0.9);
  proto.set_top_k(20);
  proto.set_min_p(0.05);
  proto.set_answer_tokens_max(33);
  const SamplingParameters parameters = SamplingFromProto(proto);
  CHECK(parameters.temperature == 0.7);
  CHECK(parameters.top_p == 0.9);
  CHECK(parameters.top_k == 20);
  CHECK(parameters.min_p == 0.05);
  CHECK(parameters.answer_tokens_max == 33);
}

TEST_CASE("a transition says what was decoded, how it ended and by which weights") {
  const FinishedSample sample = {.sample_index = 2,
                                 .seed = 9,
                                 .policy_version = 4,
                                 .answer_token_ids = {5, 6},
                                 .log_probs = {-0.5F, -0.25F},
                                 .token_policy_versions = {4, 5},
                                 .finish_reason = FinishReason::kLength};
  v1::Transition transition;
  FillTransition(sample, {1, 2, 3}, "text", &transition);
  CHECK(transition.prompt_token_ids_size() == 3);
  CHECK(transition.answer_token_ids(1) == 6);
  CHECK(transition.log_probs(1) == -0.25F);
  CHECK(transition.seed() == 9);
  CHECK(transition.policy_version() == 4);
  REQUIRE(transition.token_policy_versions_size() == 2);
  CHECK(transition.token_policy_versions(1) == 5);
  CHECK(transition.finish_reason() == v1::FINISH_REASON_LENGTH);
  CHECK(transition.answer() == "text");
}

}  // namespace warpsmith
