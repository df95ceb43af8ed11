// Heads with more rows than the tokenizer has ids, as Qwen3's.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "core/model/parameters.h"
#include "core/model/training/training_model.h"
#include "rollout_workers/engine.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kNumTokenIds = 61;
constexpr double kTemperature = 0.8;

ModelConfig PaddedConfig() {
  return {.vocab_size = 97,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512,
          .tie_word_embeddings = true};
}

Parameters HugePadding() {
  Parameters parameters{ParameterLayout(PaddedConfig())};
  parameters.InitRandom(4);
  parameters.View(0, "embedding").narrow(0, kNumTokenIds, 97 - kNumTokenIds).mul_(1e4);
  return parameters;
}

// 32 answers of 20 tokens to one prompt.
std::vector<FinishedSample> Sample(const Parameters& parameters, int64_t num_token_ids, double top_p,
                                   int top_k) {
  absl::Mutex mutex;
  std::vector<FinishedSample> samples;
  Engine engine(PaddedConfig(), {.num_slots = 32, .context_tokens_max = 64, .num_token_ids = num_token_ids},
                {.on_sample =
                     [&](FinishedSample sample) {
                       absl::MutexLock lock(&mutex);
                       samples.push_back(std::move(sample));
                     },
                 .on_failure = [](const FailedJob&) {}});
  REQUIRE(engine.SwapWeights(InitialWeights(parameters.Clone(at::kFloat)), absl::InfiniteFuture()).ok());
  GenerationGroup group{.task_index = 0, .prompt_token_ids = {3, 1, 4, 1, 5}};
  for (int s = 0; s < 32; ++s) group.samples.push_back({.sample_index = s, .seed = SampleSeed(3, "t", s)});
  REQUIRE(engine
              .Submit({.id = 1,
                       .groups = {group},
                       .sampling = {.temperature = kTemperature,
                                    .top_p = top_p,
                                    .top_k = top_k,
                                    .answer_tokens_max = 20}})
              .ok());
  absl::MutexLock lock(&mutex);
  const auto complete = [&] { return samples.size() == 32; };
  CHECK(mutex.AwaitWithTimeout(absl::Condition(&complete), absl::Seconds(60)));
  return std::exchange(samples, {});
}

bool IsPadding(int32_t token) { return token >= kNumTokenIds; }

}  // namespace

TEST_CASE(
    "padding with huge logits is never sampled, and the trainer scores what is with the worker's bits") {
  const Parameters parameters = HugePadding();
  const TrainingModel model =
      TrainingModel::Create(PaddedConfig(), Backend::kKernels, {.num_token_ids = kNumTokenIds}).value();
  for (const auto& [top_p, top_k] : {std::pair(1.0, 0), std::pair(0.95, 0), std::pair(1.0, 20)}) {
    for (const FinishedSample& sample : Sample(parameters, kNumTokenIds, top_p, top_k)) {
      REQUIRE(sample.answer_token_ids.size() == 20);
      CHECK(std::none_of(sample.answer_token_ids.begin(), sample.answer_token_ids.end(), IsPadding));
      std::vector<int64_t> tokens = {3, 1, 4, 1, 5};
      tokens.insert(tokens.end(), sample.answer_token_ids.begin(), sample.answer_token_ids.end());
      ScoredBatch batch{.targets = {tokens.begin() + 1, tokens.end()}, .temperature = kTemperature};
      batch.targets.push_back(-1);
      std::fill_n(batch.targets.begin(), 4, -1);
      batch.packed.Append(tokens);
      const RowScores scores = model.Score(parameters, batch).value();
      for (int i = 0; i < 20; ++i) CHECK(scores.log_probs[4 + i] == sample.log_probs[i]);
    }
  }
}

TEST_CASE("a head without padding is sampled in all its rows") {
  int num_high = 0;
  for (const FinishedSample& sample : Sample(HugePadding(), 0, 1.0, 0)) {
    num_high += std::any_of(sample.answer_token_ids.begin(), sample.answer_token_ids.end(), IsPadding);
  }
  CHECK(num_high == 32);
}

}  // namespace warpsmith
