// Small engines, on the CPU and on a fake device, and jobs for them.
#ifndef WARPSMITH_TESTS_SUPPORT_ENGINE_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_ENGINE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/counter_random.h"
#include "rollout_workers/batch.h"
#include "tests/support/fake_step_device.h"

namespace warpsmith {

inline ModelConfig Tiny() {
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

// What decodes: the CPU, or the fake of a device. What an engine promises, both keep.
enum class Kind { kCpu, kDevice };

inline std::unique_ptr<Batch> MakeBatchOf(Kind kind, const EngineOptions& options) {
  if (kind == Kind::kCpu) return MakeBatch(Tiny(), options).value();
  return MakeFakeDeviceBatch(Tiny(), options, std::make_shared<FakeStepDeviceState>());
}

inline GenerationGroup Group(int task, int num_samples, int prompt_tokens) {
  GenerationGroup group{.task_index = task};
  for (int i = 0; i < prompt_tokens; ++i) {
    group.prompt_token_ids.push_back(static_cast<int32_t>(UniformWord(task, i) % 97));
  }
  for (int s = 0; s < num_samples; ++s) {
    group.samples.push_back({.sample_index = s, .seed = SampleSeed(3, std::to_string(task), s)});
  }
  return group;
}

inline GenerationJob Job(int64_t id, std::vector<GenerationGroup> groups, int answer_tokens_max = 30) {
  return {.id = id,
          .groups = std::move(groups),
          .sampling = {.temperature = 0.9, .top_p = 0.95, .answer_tokens_max = answer_tokens_max}};
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_ENGINE_FIXTURE_H_
