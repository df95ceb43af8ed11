#include "rollout_workers/engine.h"

#include <pthread.h>

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/cpu_batch.h"

namespace warpsmith {
namespace {

std::unique_ptr<Batch> MakeCpuBatch(const ModelConfig& config, const EngineOptions& options) {
  WS_CHECK(!options.cuda.has_value()) << "an engine on a GPU is made by Engine::Create";
  return std::make_unique<CpuBatch>(config, options);
}

}  // namespace

class Engine::Impl {
 public:
  Impl(const ModelConfig& config, EngineOptions options, EngineEvents events, std::unique_ptr<Batch> batch)
      : config_(config), options_(std::move(options)), events_(std::move(events)), batch_(std::move(batch)) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  absl::Status Submit(GenerationJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(int64_t job_id) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelSample(const SamplePlace& sample) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SwapWeights(LoadedWeights weights, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(swap_mutex_, mutex_);
  EngineStatus status() const ABSL_LOCKS_EXCLUDED(mutex_);
  const EngineOptions& options() const { return options_; }

 private:
  struct Swap {
    LoadedWeights weights;
    bool taken = false;
    bool done = false;
    absl::Status result;
  };

  absl::Status CheckGroup(const GenerationGroup& group, const SamplingParameters& sampling) const;
  void Run();
  bool TakeMail() ABSL_LOCKS_EXCLUDED(mutex_);
  void SwapNow(Swap* swap) ABSL_LOCKS_EXCLUDED(mutex_);
  void StepOnce();
  void Report(Batch::Outcome outcome);
  bool HasMail() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || swap_ != nullptr || !submitted_.empty() || !cancelled_.empty() ||
           !cancelled_samples_.empty();
  }

  const ModelConfig config_;
  const EngineOptions options_;
  const EngineEvents events_;
  const std::unique_ptr<Batch> batch_;  // the engine's thread alone

  absl::Mutex swap_mutex_;  // one swap at a time; taken before mutex_
  mutable absl::Mutex mutex_;
  std::vector<GenerationJob> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<SamplePlace> cancelled_samples_ ABSL_GUARDED_BY(mutex_);
  int num_submitted_samples_ ABSL_GUARDED_BY(mutex_) = 0;
  Swap* swap_ ABSL_GUARDED_BY(mutex_) = nullptr;  // lives in SwapWeights
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  EngineStatus status_ ABSL_GUARDED_BY(mutex_);
  double occupancy_sum_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

absl::Status Engine::Impl::CheckGroup(const GenerationGroup& group,
                                      const SamplingParameters& sampling) const {
  const auto num_prompt_tokens = static_cast<int64_t>(group.prompt_token_ids.size());
  if (num_prompt_tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat("Task ", group.task_index, " has an empty prompt"));
  }
  if (num_prompt_tokens + sampling.answer_tokens_max > options_.context_tokens_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Task ", group.task_index, ": ", num_prompt_tokens, " prompt tokens and ", sampling.answer_tokens_max,
        " of answer exceed the context of ", options_.context_tokens_max));
  }
  for (const int32_t token : group.prompt_token_ids) {
    if (token < 0 || token >= config_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("Task ", group.task_index, " has token id ", token,
                                                     "; the vocabulary has ", config_.vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::Impl::Submit(GenerationJob job) {
  RETURN_IF_ERROR(Validate(job.sampling));
  int num_samples = 0;
  for (const GenerationGroup& group : job.groups) {
    RETURN_IF_ERROR(CheckGroup(group, job.sampling));
    num_samples += static_cast<int>(group.samples.size());
  }
  if (num_samples > options_.samples_max) {
    return absl::InvalidArgumentError(absl::StrCat("The request has ", num_samples, " samples; at most ",
                                                   options_.samples_max, " fit: split it"));
  }
  absl::MutexLock lock(&mutex_);
  if (!status_.loaded || job.policy_version != status_.policy_version) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", job.policy_version, " is asked for, ",
                     status_.loaded ? absl::StrCat("version ", status_.policy_version, " is loaded")
                                    : "no weights are loaded"));
  }
  const int num_held = status_.num_active_samples + status_.num_waiting_samples + num_submitted_samples_;
  if (num_held + num_samples > options_.samples_max) {
    return absl::ResourceExhaustedError(absl::StrCat(num_held, " samples wait or decode and ", num_samples,
                                                     " more exceed the limit of ", options_.samples_max));
  }
  num_submitted_samples_ += num_samples;
  submitted_.push_back(std::move(job));
  return absl::OkStatus();
}

void Engine::Impl::Cancel(int64_t job_id) {
  absl::MutexLock lock(&mutex_);
  cancelled_.push_back(job_id);
}

void Engine::Impl::CancelSample(const SamplePlace& sample) {
  absl::MutexLock lock(&mutex_);
  cancelled_samples_.push_back(sample);
}

absl::Status Engine::Impl::SwapWeights(LoadedWeights weights, absl::Time deadline) {
  absl::MutexLock one_at_a_time(&swap_mutex_);
  Swap swap{.weights = std::move(weights)};
  absl::MutexLock lock(&mutex_);
  swap_ = &swap;
  mutex_.AwaitWithDeadline(absl::Condition(&swap.taken), deadline);
  swap_ = nullptr;
  if (!swap.taken) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", swap.weights.policy_version, " was not taken: ", status_.num_active_samples,
                     " samples decode and ", status_.num_waiting_samples, " wait for version ",
                     status_.policy_version, "; commit again when they have ended"));
  }
  mutex_.Await(absl::Condition(&swap.done));  // a copy of the weights: bounded by its size
  return swap.result;
}

EngineStatus Engine::Impl::status() const {
  absl::MutexLock lock(&mutex_);
  EngineStatus status = status_;
  status.num_waiting_samples += num_submitted_samples_;
  return status;
}

void Engine::Impl::Run() {
  pthread_setname_np(pthread_self(), "ws-engine");
  while (TakeMail()) {
    if (!batch_->empty()) StepOnce();
  }
}

// Waits for mail when there is nothing to decode. False when the engine stops.
bool Engine::Impl::TakeMail() {
  Swap* swap = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (batch_->empty()) mutex_.Await(absl::Condition(this, &Impl::HasMail));
    if (stopping_) return false;
    for (GenerationJob& job : submitted_) batch_->Add(std::move(job));
    submitted_.clear();
    num_submitted_samples_ = 0;
    for (const int64_t job_id : cancelled_) batch_->Remove(job_id);
    cancelled_.clear();
    for (const SamplePlace& sample : cancelled_samples_) batch_->RemoveSample(sample);
    cancelled_samples_.clear();
    status_.num_active_samples = batch_->num_active();
    status_.num_waiting_samples = batch_->num_waiting();
    if (swap_ != nullptr && batch_->empty()) {
      // From here on jobs for the old version are refused, and jobs for the new one wait in submitted_.
      swap = std::exchange(swap_, nullptr);
      swap->taken = true;
      status_.loaded = true;
      status_.policy_version = swap->weights.policy_version;
      status_.weights_sha256 = swap->weights.sha256;
    }
  }
  if (swap != nullptr) SwapNow(swap);
  return true;
}

void Engine::Impl::SwapNow(Swap* swap) {
  absl::Status result = batch_->SetWeights(swap->weights);
  absl::MutexLock lock(&mutex_);
  if (!result.ok()) status_.loaded = false;
  swap->result = std::move(result);
  swap->done = true;
}

void Engine::Impl::StepOnce() {
  const absl::Time began = absl::Now();
  Batch::Outcome outcome = batch_->Step();
  {
    absl::MutexLock lock(&mutex_);
    status_.busy += absl::Now() - began;
    status_.num_steps += outcome.num_steps;
    status_.num_tokens_decoded += outcome.num_drawn;
    status_.num_tokens_prefilled += outcome.num_prefilled;
    occupancy_sum_ += static_cast<double>(outcome.num_drawn) / options_.num_slots;
    if (status_.num_steps > 0) status_.occupancy = occupancy_sum_ / static_cast<double>(status_.num_steps);
    status_.num_active_samples = batch_->num_active();
    status_.num_waiting_samples = batch_->num_waiting();
  }
  Report(std::move(outcome));
}

void Engine::Impl::Report(Batch::Outcome outcome) {
  for (const DrawnToken& token : outcome.drawn) events_.on_token(token);
  for (FinishedSample& sample : outcome.finished) events_.on_sample(std::move(sample));
  for (FailedJob& job : outcome.failed) events_.on_failure(std::move(job));
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const ModelConfig& config,
                                                       const EngineOptions& options, EngineEvents events) {
  ASSIGN_OR_RETURN(std::unique_ptr<Batch> batch, MakeBatch(config, options));
  return std::make_unique<Engine>(config, options, std::move(events), std::move(batch));
}

Engine::Engine(const ModelConfig& config, EngineOptions options, EngineEvents events)
    : Engine(config, options, std::move(events), MakeCpuBatch(config, options)) {}
Engine::Engine(const ModelConfig& config, EngineOptions options, EngineEvents events,
               std::unique_ptr<Batch> batch)
    : impl_(std::make_unique<Impl>(config, std::move(options), std::move(events), std::move(batch))) {}
Engine::~Engine() = default;
absl::Status Engine::Submit(GenerationJob job) { return impl_->Submit(std::move(job)); }
void Engine::Cancel(int64_t job_id) { impl_->Cancel(job_id); }
void Engine::CancelSample(int64_t job_id, int task_index, int sample_index) {
  impl_->CancelSample({job_id, task_index, sample_index});
}
absl::Status Engine::SwapWeights(LoadedWeights weights, absl::Time deadline) {
  return impl_->SwapWeights(std::move(weights), deadline);
}
EngineStatus Engine::status() const { return impl_->status(); }
int64_t Engine::context_tokens_max() const { return impl_->options().context_tokens_max; }

}  // namespace warpsmith
