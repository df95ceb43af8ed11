// A batch on a device of numbers, and what came of it.
#ifndef WARPSMITH_TESTS_UNIT_ROLLOUT_WORKERS_DEVICE_BATCH_RIG_H_
#define WARPSMITH_TESTS_UNIT_ROLLOUT_WORKERS_DEVICE_BATCH_RIG_H_

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"
#include "tests/support/fake_paged_device.h"
#include "tests/support/fake_step_device.h"

namespace warpsmith {

inline constexpr int32_t kNumTokenIds = 50;

inline ModelConfig Shape() {
  return {.vocab_size = 64,
          .hidden_size = 16,
          .intermediate_size = 16,
          .num_hidden_layers = 1,
          .num_attention_heads = 2,
          .num_key_value_heads = 1,
          .head_dim = 8};
}

inline EngineOptions Options() {
  return {.num_slots = 6,
          .context_tokens_max = 40,
          .scheduler = {.prefill_tokens_max = 16},
          .num_token_ids = kNumTokenIds,
          .stop_token_ids = {0, 1}};
}

// Samples of job `id`: a group a prompt length, with seeds of their own.
inline GenerationJob Job(int64_t id, const std::vector<int>& prompt_lengths, int num_samples,
                         int answer_tokens_max) {
  GenerationJob job{.id = id, .sampling = {.answer_tokens_max = answer_tokens_max}};
  for (int task = 0; task < std::ssize(prompt_lengths); ++task) {
    GenerationGroup group{.task_index = task};
    for (int i = 0; i < prompt_lengths[task]; ++i) {
      group.prompt_token_ids.push_back(static_cast<int32_t>(UniformWord(id % 7, i) % kNumTokenIds));
    }
    for (int s = 0; s < num_samples; ++s) {
      group.samples.push_back({.sample_index = 10 + s, .seed = UniformWord(id, 100 * task + s)});
    }
    job.groups.push_back(std::move(group));
  }
  return job;
}

using Place = std::tuple<int64_t, int, int>;  // job, task, sample

// A batch, its device, and all that came of it.
struct Rig {
  explicit Rig(const EngineOptions& options = Options(), int pages = 61, DeviceTurns turns = {})
      : num_pages(pages), batch(MakeFakeDeviceBatch(Shape(), options, state, pages, std::move(turns))) {
    Load(1);
  }

  void Load(uint64_t seed) {
    LoadedWeights weights{.policy_version = seed};
    weights.random_seed = seed;
    REQUIRE(batch->SetWeights(weights, paged::EntriesOnChange::kRequireNone).ok());
  }
  void Step() { Take(batch->Step()); }
  void Take(Batch::Outcome outcome) {
    num_steps += outcome.num_steps;
    num_drawn += outcome.num_drawn;
    for (const DrawnToken& token : outcome.drawn) {
      drawn[{token.job_id, token.task_index, token.sample_index}].push_back(token.token_id);
    }
    for (FinishedSample& sample : outcome.finished) {
      CHECK(sample.started <= sample.finished);
      const Place place(sample.job_id, sample.task_index, sample.sample_index);
      CHECK(finished.emplace(place, std::move(sample)).second);
    }
    for (FailedJob& job : outcome.failed) CHECK(failed.emplace(job.job_id, job.status).second);
  }
  void RunToEnd() {
    for (int i = 0; !batch->empty(); ++i) {
      REQUIRE(i < 100'000);
      Step();
    }
    CHECK(state->num_in_flight == 0);
  }
  bool AllPagesAreLeft() const {
    const paged::PagedBatchStatus status = batch->paged_status();
    return status.num_free_pages + status.num_cached_pages == num_pages - 1;
  }

  const int num_pages;  // the padding page among them
  std::shared_ptr<FakeStepDeviceState> state = std::make_shared<FakeStepDeviceState>();
  std::unique_ptr<PagedDeviceBatch> batch;
  std::map<Place, FinishedSample> finished;
  std::map<Place, std::vector<int32_t>> drawn;
  std::map<int64_t, absl::Status> failed;
  int num_steps = 0;
  int num_drawn = 0;
};

// Returns whether `sample` of `job` is what decoding it alone with `weights` gives.
inline bool IsAsAlone(const FinishedSample& sample, const GenerationJob& job, uint64_t weights) {
  std::vector<int32_t> tokens = job.groups[sample.task_index].prompt_token_ids;
  for (size_t i = 0; i < sample.answer_token_ids.size(); ++i) {
    if (sample.log_probs[i] != HashedLogProb(tokens, sample.seed, i, weights)) return false;
    tokens.push_back(HashedToken(tokens, sample.seed, i, weights, kNumTokenIds));
    if (tokens.back() != sample.answer_token_ids[i]) return false;
  }
  const bool stopped = tokens.back() <= 1;
  const bool is_long = std::ssize(sample.answer_token_ids) == job.sampling.answer_tokens_max;
  return !sample.answer_token_ids.empty() && (stopped || is_long) &&
         sample.finish_reason == (stopped ? FinishReason::kStop : FinishReason::kLength);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_ROLLOUT_WORKERS_DEVICE_BATCH_RIG_H_
