// Jobs for engines on GPUs, one or several that share a model, and what tells their samples apart.
#ifndef WARPSMITH_TESTS_SUPPORT_DEVICE_GROUP_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_DEVICE_GROUP_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/counter_random.h"
#include "rollout_workers/batch.h"
#include "tests/support/catch.h"

namespace warpsmith {

inline EngineOptions GroupOptions(std::vector<int> devices) {
  EngineOptions options{.num_slots = 16, .context_tokens_max = 512};
  options.cuda =
      CudaPlacement{.devices = std::move(devices), .num_pages = 16 * 32 + 1, .prefill_tokens_max = 128};
  return options;
}

// Prompts of 20, 51, 82, ... tokens of `config`.
inline GenerationJob GroupJob(const ModelConfig& config, int num_prompts, int num_samples, double temperature,
                              int answer_tokens) {
  GenerationJob job{.id = 1, .sampling = {.temperature = temperature, .answer_tokens_max = answer_tokens}};
  for (int task = 0; task < num_prompts; ++task) {
    GenerationGroup group{.task_index = task};
    for (int i = 0; i < 20 + 31 * task; ++i) {
      group.prompt_token_ids.push_back(
          static_cast<int32_t>(UniformWord(task, i) % static_cast<uint64_t>(config.vocab_size)));
    }
    for (int s = 0; s < num_samples; ++s) {
      group.samples.push_back({.sample_index = s, .seed = UniformWord(100 + task, s)});
    }
    job.groups.push_back(std::move(group));
  }
  return job;
}

using GroupSamples = std::map<std::pair<int, int>, FinishedSample>;  // by task and sample

// What an engine makes of `job` with random weights; ends the test where the job fails.
inline GroupSamples RunGroupJob(const ModelConfig& config, const EngineOptions& options,
                                const GenerationJob& job) {
  absl::StatusOr<std::unique_ptr<Batch>> batch = MakeBatch(config, options);
  INFO(batch.status().message());
  REQUIRE(batch.ok());
  REQUIRE((*batch)->SetWeights(RandomWeights(config, 1), paged::EntriesOnChange::kRequireNone).ok());
  (*batch)->Add(job);
  GroupSamples samples;
  for (int i = 0; !(*batch)->empty(); ++i) {
    REQUIRE(i < 10'000);
    Batch::Outcome outcome = (*batch)->Step();
    for (const FailedJob& failed : outcome.failed) FAIL(failed.status.ToString());
    for (FinishedSample& sample : outcome.finished) {
      samples[{sample.task_index, sample.sample_index}] = std::move(sample);
    }
  }
  return samples;
}

inline bool SameBits(const GroupSamples& a, const GroupSamples& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.answer_token_ids == y.second.answer_token_ids &&
           x.second.log_probs == y.second.log_probs;
  });
}

// Greedy answers of logits that differ by rounding: the largest is taken of each, so where two answers part, the
// tokens that they took were nearly equally likely.
struct GreedyComparison {
  int num_tokens = 0;
  int num_equal = 0;                   // before the answers part
  int num_parted = 0;                  // answers
  double log_prob_difference_max = 0;  // up to where they part, that token included
};

inline GreedyComparison CompareGreedy(const GroupSamples& expected, const GroupSamples& found) {
  GreedyComparison comparison;
  for (const auto& [place, sample] : expected) {
    const FinishedSample& other = found.at(place);
    comparison.num_tokens += static_cast<int>(sample.answer_token_ids.size());
    for (size_t i = 0; i < sample.answer_token_ids.size(); ++i) {
      comparison.log_prob_difference_max = std::max<double>(
          comparison.log_prob_difference_max, std::abs(other.log_probs.at(i) - sample.log_probs[i]));
      if (sample.answer_token_ids[i] != other.answer_token_ids.at(i)) {
        ++comparison.num_parted;
        break;
      }
      ++comparison.num_equal;
    }
  }
  return comparison;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_DEVICE_GROUP_FIXTURE_H_
