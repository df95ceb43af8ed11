// Continuous batching: decodes the samples of many jobs together, a token of each a step.
//
// Includes nothing of LibTorch, so that the service can name it.
#ifndef WARPSMITH_ROLLOUT_WORKERS_ENGINE_H_
#define WARPSMITH_ROLLOUT_WORKERS_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/paged/entries_on_change.h"
#include "rollout_workers/placement.h"
#include "rollout_workers/scheduler.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

struct EngineOptions {
  // Samples that decode together.
  int num_slots = 64;
  // Tokens of prompt and answer together that a slot holds.
  int64_t context_tokens_max = 2048;
  // Samples of all jobs that may wait or decode; more are refused.
  int samples_max = 4096;
  // Of the CPU: prompts beside decodes.
  SchedulerLimits scheduler;
  // Ids that the tokenizer has, at most the model's vocab_size; 0: all of it. Rows of the head
  // behind them pad it: they have no logit, so that they are never sampled and are in no softmax.
  int64_t num_token_ids = 0;
  // Any of these ends an answer.
  std::vector<int32_t> stop_token_ids;
  // Threads of the CPU's kernels, the engine's own among them.
  int num_threads = 1;
  // The GPU that decodes; none: the CPU.
  std::optional<CudaPlacement> cuda;
  // Decodes by turns with trainers and referees of the host (core/base/device_turns.h), so that a referee
  // times programs on an idle GPU. Engines that serve alone need none.
  bool takes_turns = false;
  // Longest time that samples are held, by an engine that sleeps or has no weights: then they fail.
  absl::Duration hold_max = absl::Minutes(30);
};

// Where samples go. All are called from the engine's thread, which decodes nothing until they return.
struct EngineEvents {
  std::function<void(FinishedSample)> on_sample;
  std::function<void(FailedJob)> on_failure;
  // Of jobs that report tokens, before the sample that they make; may be empty where no job does.
  std::function<void(DrawnToken)> on_token;
  // Once, after all jobs have failed: the device is lost, and only a new process has it again. May be empty.
  std::function<void()> on_lost;
};

// What a sleeping engine gives back of its GPU's memory.
enum class SleepDepth { kPages, kPagesAndWeights };

// Counters since the start.
struct EngineStatus {
  bool loaded = false;
  bool asleep = false;
  // UNAVAILABLE: why the device can do nothing any more. No weights are loaded then.
  absl::Status lost;
  uint64_t policy_version = 0;
  std::string weights_sha256;
  int num_active_samples = 0;
  int num_waiting_samples = 0;
  int64_t num_tokens_decoded = 0;
  int64_t num_tokens_prefilled = 0;
  int64_t num_steps = 0;
  // Time in steps and draws; idle time is not in it.
  absl::Duration busy;
  // Mean share of the slots that worked in a step.
  double occupancy = 0;
};

class Batch;

// Owns the thread "ws-engine", and the batch that it alone touches. Other members may be called from any thread. A
// sample is a function of weights, prompt, sampling parameters and seed: neither the other samples of a step nor the
// order of jobs changes a bit of it, on a GPU as far as it is batch_invariant.
class Engine {
 public:
  // Where `options` place it. The errors of MakeBatch (rollout_workers/batch.h).
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const ModelConfig& config,
                                                        const EngineOptions& options, EngineEvents events);
  // On the CPU; `config` and `options` valid. No weights are loaded yet.
  Engine(const ModelConfig& config, EngineOptions options, EngineEvents events);
  // With an empty batch made of the same `config` and `options`.
  Engine(const ModelConfig& config, EngineOptions options, EngineEvents events, std::unique_ptr<Batch> batch);
  // Gives up what is left without an event, and joins the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues the samples of `job`; they come as events, in the order in which they end. INVALID_ARGUMENT: an
  // empty prompt, a token out of the vocabulary, prompt and answer over context_tokens_max, more samples than
  // samples_max. FAILED_PRECONDITION: another version is loaded. RESOURCE_EXHAUSTED: over samples_max. UNAVAILABLE: the
  // device is lost.
  absl::Status Submit(GenerationJob job);

  // Forgets a job. No event of it comes after the step that is running; unknown ids are ignored.
  void Cancel(int64_t job_id);

  // Likewise one sample that decodes. One that has no token yet, or has ended, is ignored.
  void CancelSample(int64_t job_id, int task_index, int sample_index);

  // Takes `weights` between two steps. With kRequireNone when no sample waits or decodes; otherwise at once, and those
  // that do go on with the new weights: FinishedSample::token_policy_versions says which drew what. Nothing to do where
  // the same weights, by sha256, are in use under the same version. FAILED_PRECONDITION when it did not come to pass by
  // `deadline`, while the engine is asleep, and, unless with kRequireNone, for other weights under a version that is in
  // use or that samples under way have tokens of, for tokens would not tell them apart; UNIMPLEMENTED for other
  // `entries` than kRequireNone on the CPU: the old weights are still in use then. UNAVAILABLE: the device is lost.
  // After any other error none are, and samples that wait or decode are held until new ones come, at most
  // EngineOptions::hold_max. With kRequireNone they then fail with ABORTED before the new ones are taken: what they
  // would have to end with is gone.
  absl::Status SwapWeights(LoadedWeights weights, absl::Time deadline,
                           paged::EntriesOnChange entries = paged::EntriesOnChange::kRequireNone);

  // Gives memory of the GPU back, between two steps, and takes it again. Meanwhile samples are held, none is lost, and
  // with kPages more may be submitted. After kPagesAndWeights they are held until new weights are swapped in, after
  // Wake. None is held longer than EngineOptions::hold_max: then they fail with ABORTED. Both may be repeated.
  // UNIMPLEMENTED on the CPU; DEADLINE_EXCEEDED: the engine did not come to it, and nothing has changed; Wake:
  // RESOURCE_EXHAUSTED where others have taken the memory meanwhile, and the engine sleeps on.
  absl::Status Sleep(SleepDepth depth, absl::Time deadline = absl::InfiniteFuture());
  absl::Status Wake(absl::Time deadline = absl::InfiniteFuture());

  EngineStatus status() const;
  int64_t context_tokens_max() const;
  // The GPU that decodes; none: the CPU.
  const std::optional<CudaPlacement>& cuda() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_ENGINE_H_
