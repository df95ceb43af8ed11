#include "core/model/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sub.h>

#include "core/kernels/log_softmax.h"
#include "core/model/training/training_model.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

Parameters LivelyParameters(const ModelConfig& config) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(3);
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    for (const ParameterEntry& entry : parameters.layout().buffers()[i].entries) {
      if (entry.decays) parameters.View(i, entry.name).mul_(6.0);
      for (int64_t j = 0; entry.name == "qkv_bias" && j < entry.size(); ++j) {
        parameters.View(i, entry.name)[j].fill_(UniformDouble(i, j) - 0.5);
      }
    }
  }
  return parameters;
}

constexpr int64_t kNumTokenIds = 83;  // of the 101 rows that OddConfig's head has

// Rows of the head behind kNumTokenIds so large that a softmax over all rows would leave nothing to
// the others.
Parameters WithHugePadding(const ModelConfig& config) {
  Parameters parameters = LivelyParameters(config);
  const bool tied = config.tie_word_embeddings;
  const int buffer = tied ? parameters.layout().embedding_buffer() : parameters.layout().final_buffer();
  at::Tensor head = parameters.View(buffer, tied ? "embedding" : "head");
  head.narrow(0, kNumTokenIds, config.vocab_size - kNumTokenIds).mul_(1e4);
  return parameters;
}

// As RandomTokens, of ids that are no padding.
std::vector<int64_t> RealTokens(int64_t count, uint64_t seed) {
  ModelConfig config = OddConfig();
  config.vocab_size = kNumTokenIds;
  return RandomTokens(config, count, seed);
}

Decoder KernelDecoder(const ModelConfig& config, ThreadPool* pool = nullptr, int64_t num_token_ids = 0) {
  return Decoder::Create(config, Backend::kKernels, {.pool = pool, .num_token_ids = num_token_ids}).value();
}

Decoder OperatorDecoder(const ModelConfig& config, at::ScalarType dtype) {
  return Decoder::Create(config, Backend::kOperators, {.placement = {.dtype = dtype}}).value();
}

StepSequence Tokens(int slot, const std::vector<int64_t>& tokens, int64_t first, int64_t count,
                    bool wants_logits = true) {
  return {slot, first, std::vector<int32_t>(tokens.begin() + first, tokens.begin() + first + count),
          wants_logits};
}

// Logits after every token of `tokens` from `prompt` on, decoded alone in one slot.
std::vector<at::Tensor> DecodeAlone(Decoder& decoder, const std::vector<int64_t>& tokens, int64_t prompt) {
  KvCache cache = decoder.MakeCache(1, 512);
  std::vector<at::Tensor> rows = {decoder.Step({Tokens(0, tokens, 0, prompt)}, cache).value()[0]};
  for (int64_t i = prompt; i < static_cast<int64_t>(tokens.size()); ++i) {
    rows.push_back(decoder.Step({Tokens(0, tokens, i, 1)}, cache).value()[0]);
  }
  return rows;
}

TEST_CASE("a sequence decoded alone and among 63 others has the same logits to the bit") {
  const ModelConfig config = OddConfig();
  ThreadPool pool(2);
  Decoder decoder = KernelDecoder(config), crowded = KernelDecoder(config, &pool);
  const Parameters parameters = LivelyParameters(config);
  REQUIRE(decoder.SetParameters(parameters).ok());
  REQUIRE(crowded.SetParameters(parameters).ok());
  const std::vector<int64_t> tokens = RandomTokens(config, 150, 77);
  const std::vector<at::Tensor> expected = DecodeAlone(decoder, tokens, 90);

  KvCache cache = decoder.MakeCache(64, 512);
  std::vector<std::vector<int64_t>> others;
  std::vector<StepSequence> prompts;
  for (int slot = 0; slot < 64; ++slot) {
    others.push_back(slot == 37 ? tokens : RandomTokens(config, 170, slot));
    prompts.push_back(Tokens(slot, others[slot], 0, slot == 37 ? 90 : 20 + slot));
  }
  CHECK(at::equal(crowded.Step(prompts, cache).value()[37], expected[0]));
  for (int64_t i = 0; i < 60; ++i) {
    std::vector<StepSequence> step;
    for (int slot = 0; slot < 64; ++slot) {
      step.push_back(Tokens(slot, others[slot], (slot == 37 ? 90 : 20 + slot) + i, 1));
    }
    CHECK(at::equal(crowded.Step(step, cache).value()[37], expected[i + 1]));
  }
}

TEST_CASE("logits do not depend on how a prompt is cut into steps") {
  const ModelConfig config = OddConfig();
  Decoder decoder = KernelDecoder(config);
  REQUIRE(decoder.SetParameters(LivelyParameters(config)).ok());
  const std::vector<int64_t> tokens = RandomTokens(config, 300, 5);
  const at::Tensor expected = DecodeAlone(decoder, tokens, 300)[0];
  for (const int64_t part : {1, 7, 64, 145, 299}) {
    KvCache cache = decoder.MakeCache(2, 300);
    at::Tensor logits;
    for (int64_t first = 0; first < 300; first += part) {
      const int64_t count = std::min(part, 300 - first);
      logits = decoder.Step({Tokens(1, tokens, first, count, first + count == 300)}, cache).value();
    }
    CHECK(at::equal(logits[0], expected));
  }
}

TEST_CASE("training scores a token with the bits that decoding scored it with, for every architecture") {
  std::vector<NamedConfig> configs = FamilyConfigs();
  configs.push_back({"the demo's", DemoConfig()});
  for (const auto& [name, config] : configs) {
    INFO(name);
    const Parameters parameters = LivelyParameters(config);
    Decoder decoder = KernelDecoder(config);
    REQUIRE(decoder.SetParameters(parameters).ok());
    const std::vector<int64_t> tokens = RandomTokens(config, 140, 5);
    const std::vector<at::Tensor> rows = DecodeAlone(decoder, tokens, 60);

    ScoredBatch batch{.temperature = 0.9};
    batch.packed.Append(RandomTokens(config, 33, 1));
    batch.packed.Append(tokens);
    batch.targets.assign(33 + 60 - 1, -1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 60, tokens.end());
    batch.targets.push_back(-1);
    const TrainingModel model = TrainingModel::Create(config, Backend::kKernels).value();
    const RowScores scores = model.Score(parameters, batch).value();
    for (int64_t i = 60; i < 140; ++i) {
      const float* logits = rows[i - 60].const_data_ptr<float>();
      const TokenScore<float> score = ScoreToken(logits, config.vocab_size, tokens[i], 0.9f);
      CHECK(score.log_prob == scores.log_probs[33 + i - 1]);
      CHECK(score.entropy == scores.entropies[33 + i - 1]);
    }
  }
}

TEST_CASE("the padding of a head has no logit, and worker and trainer score the rest with the same bits") {
  for (const bool tied : {true, false}) {
    ModelConfig config = OddConfig();
    config.tie_word_embeddings = tied;
    const Parameters parameters = WithHugePadding(config);
    Decoder decoder = KernelDecoder(config, nullptr, kNumTokenIds), all = KernelDecoder(config);
    REQUIRE(decoder.SetParameters(parameters).ok());
    REQUIRE(all.SetParameters(parameters).ok());
    const std::vector<int64_t> tokens = RealTokens(80, 5);
    const std::vector<at::Tensor> rows = DecodeAlone(decoder, tokens, 60);
    const at::Tensor full = DecodeAlone(all, tokens, 60)[0];
    REQUIRE(rows[0].size(0) == kNumTokenIds);
    CHECK(at::equal(rows[0], full.narrow(0, 0, kNumTokenIds)));
    CHECK(full.max().item<float>() > 1000 * rows[0].max().item<float>());

    ScoredBatch batch{.targets = std::vector<int64_t>(59, -1), .temperature = 0.9};
    batch.packed.Append(tokens);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 60, tokens.end());
    batch.targets.push_back(-1);
    const TrainingModel model =
        TrainingModel::Create(config, Backend::kKernels, {.num_token_ids = kNumTokenIds}).value();
    const RowScores scores = model.Score(parameters, batch).value();
    for (int64_t i = 60; i < 80; ++i) {
      const TokenScore<float> score =
          ScoreToken(rows[i - 60].const_data_ptr<float>(), kNumTokenIds, tokens[i], 0.9f);
      CHECK(score.log_prob > -60);
      CHECK(score.log_prob == scores.log_probs[i - 1]);
      CHECK(score.entropy == scores.entropies[i - 1]);
    }
  }
}

TEST_CASE("a slot used again forgets the sequence before") {
  const ModelConfig config = OddConfig();
  Decoder decoder = KernelDecoder(config);
  REQUIRE(decoder.SetParameters(LivelyParameters(config)).ok());
  const std::vector<int64_t> tokens = RandomTokens(config, 50, 5), before = RandomTokens(config, 200, 6);
  KvCache cache = decoder.MakeCache(1, 200);
  REQUIRE(decoder.Step({Tokens(0, before, 0, 200)}, cache).ok());
  CHECK(at::equal(decoder.Step({Tokens(0, tokens, 0, 50)}, cache).value()[0],
                  DecodeAlone(decoder, tokens, 50)[0]));
}

TEST_CASE("bad steps are refused with the value and the limit") {
  const ModelConfig config = OddConfig();
  Decoder decoder = KernelDecoder(config);
  KvCache cache = decoder.MakeCache(2, 10);
  CHECK(decoder.Step({{.slot = 2, .token_ids = {1}}}, cache).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(decoder.Step({{.slot = 1, .token_ids = {101}}}, cache).status().message() ==
        "step: token 101 in slot 1 of a vocabulary of 101");
  CHECK(decoder.Step({{.slot = 1, .first_position = 10, .token_ids = {1}}}, cache).status().message() ==
        "step: positions [10, 11) of slot 1 exceed its 10 tokens");
  CHECK_FALSE(decoder.Step({{.slot = 1, .token_ids = {1}}, {.slot = 1, .token_ids = {1}}}, cache).ok());
  CHECK_FALSE(decoder.Step({{.slot = 1, .token_ids = {}}}, cache).ok());
  CHECK(decoder.Step({}, cache).value().size(0) == 0);
}

TEST_CASE("the operators decode the same text as the kernels, beyond the positions of the first training") {
  const NamedConfig family = GENERATE(from_range(FamilyConfigs()));
  INFO(family.name);
  const ModelConfig& config = family.config;
  const Parameters parameters = LivelyParameters(config);
  Decoder kernels = KernelDecoder(config), operators = OperatorDecoder(config, at::kDouble);
  REQUIRE(kernels.SetParameters(parameters).ok());
  REQUIRE(operators.SetParameters(parameters.Clone(at::kDouble)).ok());
  const std::vector<int64_t> tokens = RandomTokens(config, 5 * kFirstTrainedPositions, 5);
  KvCache cache = kernels.MakeCache(1, 512), doubles = operators.MakeCache(1, 512);
  for (int64_t i = 0; i < 5 * kFirstTrainedPositions; i += kFirstTrainedPositions) {
    const at::Tensor a = kernels.Step({Tokens(0, tokens, i, kFirstTrainedPositions)}, cache).value();
    const at::Tensor b = operators.Step({Tokens(0, tokens, i, kFirstTrainedPositions)}, doubles).value();
    CHECK(a.sub(b).abs().max().item<float>() < 1e-4f);
  }
}

TEST_CASE("groups of 96, 97 and 128 query heads decode with training's bits, near the operators") {
  for (const int64_t group : {96, 97, 128}) {
    ModelConfig config = OddConfig();
    config.num_attention_heads = 2 * group;
    config.head_dim = 8;
    const Parameters parameters = LivelyParameters(config);
    Decoder decoder = KernelDecoder(config), operators = OperatorDecoder(config, at::kDouble);
    REQUIRE(decoder.SetParameters(parameters).ok());
    REQUIRE(operators.SetParameters(parameters.Clone(at::kDouble)).ok());
    const std::vector<int64_t> tokens = RandomTokens(config, 80, 5);
    const std::vector<at::Tensor> rows = DecodeAlone(decoder, tokens, 60);

    PackedBatch batch;
    batch.Append(tokens);
    const TrainingModel model = TrainingModel::Create(config, Backend::kKernels).value();
    const at::Tensor logits = model.Logits(parameters, batch);
    const std::vector<at::Tensor> expected = DecodeAlone(operators, tokens, 60);
    for (size_t i = 0; i < rows.size(); ++i) {
      INFO(group << " query heads a group, token " << 59 + i);
      CHECK(at::equal(rows[i], logits[static_cast<int64_t>(59 + i)]));
      CHECK(rows[i].sub(expected[i]).abs().max().item<float>() < 1e-4f);
    }
  }
}

TEST_CASE("a decoder takes weights and caches that it was made for, and no others") {
  const ModelConfig config = OddConfig();
  Decoder kernels = KernelDecoder(config), operators = OperatorDecoder(config, at::kFloat);
  const Parameters parameters = LivelyParameters(config);
  const absl::Status status = kernels.SetParameters(parameters.Clone(at::kBFloat16));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() ==
        "decoder: the new weights are BFloat16 on cpu, but it was made for Float on cpu: convert them");
  CHECK(absl::IsInvalidArgument(operators.SetParameters(parameters.Clone(at::kDouble))));
  CHECK(kernels.SetParameters(parameters).ok());
  CHECK(operators.SetParameters(parameters).ok());
  KvCache cache = kernels.MakeCache(1, 10), other = operators.MakeCache(1, 10);
  CHECK(kernels.Step({{.token_ids = {1}}}, cache).ok());
  CHECK(operators.Step({{.token_ids = {1}}}, other).ok());
  CHECK(absl::IsInvalidArgument(kernels.Step({{.token_ids = {1}}}, other).status()));
  CHECK(absl::IsInvalidArgument(operators.Step({{.token_ids = {1}}}, cache).status()));
}

}  // namespace
}  // namespace warpsmith
