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
#include "rollout_workers/weights_in_use.h"

namespace warpsmith {

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
  absl::Status SwapWeights(LoadedWeights weights, absl::Time deadline, paged::EntriesOnChange entries)
      ABSL_LOCKS_EXCLUDED(order_mutex_, mutex_);
  absl::Status Sleep(SleepDepth depth, absl::Time deadline) ABSL_LOCKS_EXCLUDED(order_mutex_, mutex_);
  absl::Status Wake(absl::Time deadline) ABSL_LOCKS_EXCLUDED(order_mutex_, mutex_);
  EngineStatus status() const ABSL_LOCKS_EXCLUDED(mutex_);
  const EngineOptions& options() const { return options_; }

 private:
  // What another thread wants done between two steps.
  struct Order {
    std::function<absl::Status()> work;  // on the engine's thread
    // Set: new weights, which the status tells from the moment on that the order is taken.
    const LoadedWeights* weights = nullptr;
    bool needs_empty = false;
    bool taken = false;
    bool done = false;
    absl::Status result;
  };

  absl::Status CheckGroup(const GenerationGroup& group, const SamplingParameters& sampling) const;
  void Run();
  bool TakeMail() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Carry(Order order, absl::Time deadline) ABSL_LOCKS_EXCLUDED(order_mutex_, mutex_);
  Order* Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(Order* order) ABSL_LOCKS_EXCLUDED(mutex_);
  void StepOnce();
  void EndIfLost() ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const Batch::Outcome& outcome, absl::Duration busy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report(Batch::Outcome outcome);
  bool CanStep() const { return !batch_->empty() && batch_->can_step(); }
  // Samples that nothing can go on with: the engine sleeps, or has no weights.
  bool IsHolding() const { return !batch_->empty() && !batch_->can_step(); }
  void AwaitMail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpHeld(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // An order that waits for samples to end is no mail: it is taken when they have, or never will.
  bool IsTakeable(const Order* order) const {
    return order != nullptr && (!order->needs_empty || batch_->empty() || IsHolding());
  }
  bool HasMail() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || IsTakeable(order_) || !submitted_.empty() || !cancelled_.empty() ||
           !cancelled_samples_.empty();
  }

  const ModelConfig config_;
  const EngineOptions options_;
  const EngineEvents events_;
  const std::unique_ptr<Batch> batch_;              // the engine's thread alone
  absl::Time hold_until_ = absl::InfiniteFuture();  // likewise

  absl::Mutex order_mutex_;  // one order at a time; taken before mutex_
  mutable absl::Mutex mutex_;
  std::vector<GenerationJob> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<SamplePlace> cancelled_samples_ ABSL_GUARDED_BY(mutex_);
  int num_submitted_samples_ ABSL_GUARDED_BY(mutex_) = 0;
  Order* order_ ABSL_GUARDED_BY(mutex_) = nullptr;  // lives in Carry
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  EngineStatus status_ ABSL_GUARDED_BY(mutex_);
  double occupancy_sum_ ABSL_GUARDED_BY(mutex_) = 0;
  WeightsUnderWay under_way_ ABSL_GUARDED_BY(mutex_);

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
  RETURN_IF_ERROR(CheckTopTokens(job.num_top_tokens));
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
  if (!status_.lost.ok()) return status_.lost;
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

absl::Status Engine::Impl::SwapWeights(LoadedWeights weights, absl::Time deadline,
                                       paged::EntriesOnChange entries) {
  const bool waits = entries == paged::EntriesOnChange::kRequireNone;
  if (!waits && !batch_->can_continue()) {
    return absl::UnimplementedError(
        absl::StrCat("On the CPU samples do not go on with the weights of version ", weights.policy_version,
                     "; swap them in once the samples have ended"));
  }
  return Carry({.work = [&] { return batch_->SetWeights(weights, entries); },
                .weights = &weights,
                .needs_empty = waits},
               deadline);
}

absl::Status Engine::Impl::Sleep(SleepDepth depth, absl::Time deadline) {
  const auto sleep = [&] {
    RETURN_IF_ERROR(batch_->Sleep(depth));
    RETURN_IF_ERROR(batch_->lost());
    absl::MutexLock lock(&mutex_);
    status_.asleep = true;
    if (depth == SleepDepth::kPagesAndWeights) status_.loaded = false;
    return absl::OkStatus();
  };
  return Carry({.work = sleep}, deadline);
}

absl::Status Engine::Impl::Wake(absl::Time deadline) {
  const auto wake = [&] {
    RETURN_IF_ERROR(batch_->Wake());
    absl::MutexLock lock(&mutex_);
    status_.asleep = false;
    return absl::OkStatus();
  };
  return Carry({.work = wake}, deadline);
}

// Has the engine's thread do it, at the latest begun by `deadline`.
absl::Status Engine::Impl::Carry(Order order, absl::Time deadline) {
  absl::MutexLock one_at_a_time(&order_mutex_);
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(status_.lost);
  if (order.weights != nullptr) {
    if (AreInUse(*order.weights, status_)) return absl::OkStatus();
    // It stays asleep until the order is over: to wake it is an order too.
    EngineStatus status = status_;
    status.num_waiting_samples += num_submitted_samples_;
    RETURN_IF_ERROR(CheckCanTake(*order.weights, status, under_way_, !order.needs_empty));
  }
  order_ = &order;
  mutex_.AwaitWithDeadline(absl::Condition(&order.taken), deadline);
  order_ = nullptr;
  if (!order.taken && order.weights == nullptr) {
    return absl::DeadlineExceededError("The engine has not ended its step in time; ask again");
  }
  if (!order.taken) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Version ", order.weights->policy_version, " was not taken: ", status_.num_active_samples,
        " samples decode and ", status_.num_waiting_samples, " wait for version ", status_.policy_version,
        "; commit again when they have ended"));
  }
  mutex_.Await(absl::Condition(&order.done));  // a batch's calls end: a device that hangs is lost by them
  return order.result;
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
    if (CanStep()) StepOnce();
    EndIfLost();
  }
}

// Waits for mail when there is nothing to decode. False when the engine stops.
bool Engine::Impl::TakeMail() {
  Order* order = nullptr;
  bool wants_device = false;
  {
    absl::MutexLock lock(&mutex_);
    if (CanStep()) {
      hold_until_ = absl::InfiniteFuture();
    } else {
      batch_->Rest();
      AwaitMail();
    }
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
    wants_device = IsTakeable(order_);
  }
  // Not while the lock is held: another process may have the device for long, and the order then waits.
  if (wants_device && batch_->HoldDevice()) {
    absl::MutexLock lock(&mutex_);
    if (IsTakeable(order_)) order = Take();
  }
  if (order != nullptr) CarryOut(order);
  if (IsHolding() && absl::Now() >= hold_until_) {
    GiveUpHeld(
        absl::StrCat("for ", absl::FormatDuration(options_.hold_max),
                     " the engine was asleep or had no weights: wake it, commit weights, and ask again"));
  }
  return true;
}

// Samples that are held keep it waiting no longer than they may be.
void Engine::Impl::AwaitMail() {
  if (!IsHolding()) hold_until_ = absl::InfiniteFuture();
  if (IsHolding() && hold_until_ == absl::InfiniteFuture()) hold_until_ = absl::Now() + options_.hold_max;
  mutex_.AwaitWithDeadline(absl::Condition(this, &Impl::HasMail), hold_until_);
}

void Engine::Impl::GiveUpHeld(const std::string& why) {
  Batch::Outcome outcome =
      batch_->GiveUp(absl::AbortedError(absl::StrCat("Held samples were given up: ", why)));
  hold_until_ = absl::InfiniteFuture();
  {
    absl::MutexLock lock(&mutex_);
    Count(outcome, absl::ZeroDuration());
  }
  Report(std::move(outcome));
}

Engine::Impl::Order* Engine::Impl::Take() {
  Order* const order = std::exchange(order_, nullptr);
  order->taken = true;
  if (order->weights == nullptr) return order;
  // From here on jobs for the old version are refused, and jobs for the new one wait in submitted_.
  status_.loaded = true;
  status_.policy_version = order->weights->policy_version;
  status_.weights_sha256 = order->weights->sha256;
  return order;
}

void Engine::Impl::CarryOut(Order* order) {
  Batch::Outcome settled = batch_->Settle();
  {
    absl::MutexLock lock(&mutex_);
    Count(settled, absl::ZeroDuration());
  }
  Report(std::move(settled));
  if (order->needs_empty && IsHolding()) {
    GiveUpHeld(absl::StrCat("the weights that they began with are gone, and version ",
                            order->weights->policy_version, " was committed for new ones: ask again"));
  }
  absl::Status result = batch_->lost();
  if (result.ok()) result = order->work();
  if (!batch_->lost().ok()) result = batch_->lost();  // tells the client that another worker may do it
  absl::MutexLock lock(&mutex_);
  if (order->weights != nullptr && !result.ok()) status_.loaded = false;
  if (order->weights != nullptr && result.ok()) under_way_.Took(*order->weights, !batch_->empty());
  order->result = std::move(result);
  order->done = true;
}

void Engine::Impl::StepOnce() {
  const absl::Time began = absl::Now();
  Batch::Outcome outcome = batch_->Step();
  {
    absl::MutexLock lock(&mutex_);
    Count(outcome, absl::Now() - began - outcome.waited);
  }
  Report(std::move(outcome));
}

// A lost device stays lost. Jobs that were submitted before this was known fail here too.
void Engine::Impl::EndIfLost() {
  const absl::Status lost = batch_->lost();
  if (lost.ok()) return;
  Report(batch_->Settle());
  bool is_new = false;
  {
    absl::MutexLock lock(&mutex_);
    is_new = status_.lost.ok();
    status_.lost = lost;
    status_.loaded = false;
    status_.num_active_samples = batch_->num_active();
    status_.num_waiting_samples = batch_->num_waiting();
  }
  if (is_new && events_.on_lost) events_.on_lost();
}

void Engine::Impl::Count(const Batch::Outcome& outcome, absl::Duration busy) {
  status_.busy += busy;
  status_.num_steps += outcome.num_steps;
  status_.num_tokens_decoded += outcome.num_drawn;
  status_.num_tokens_prefilled += outcome.num_prefilled;
  occupancy_sum_ += static_cast<double>(outcome.num_drawn) / options_.num_slots;
  if (status_.num_steps > 0) status_.occupancy = occupancy_sum_ / static_cast<double>(status_.num_steps);
  status_.num_active_samples = batch_->num_active();
  status_.num_waiting_samples = batch_->num_waiting();
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
    : Engine(config, options, std::move(events), std::make_unique<CpuBatch>(config, options)) {
  WS_CHECK(!options.cuda.has_value()) << "an engine on a GPU is made by Engine::Create";
}
Engine::Engine(const ModelConfig& config, EngineOptions options, EngineEvents events,
               std::unique_ptr<Batch> batch)
    : impl_(std::make_unique<Impl>(config, std::move(options), std::move(events), std::move(batch))) {}
Engine::~Engine() = default;
absl::Status Engine::Submit(GenerationJob job) { return impl_->Submit(std::move(job)); }
void Engine::Cancel(int64_t job_id) { impl_->Cancel(job_id); }
void Engine::CancelSample(int64_t job_id, int task_index, int sample_index) {
  impl_->CancelSample({job_id, task_index, sample_index});
}
absl::Status Engine::SwapWeights(LoadedWeights weights, absl::Time deadline, paged::EntriesOnChange entries) {
  return impl_->SwapWeights(std::move(weights), deadline, entries);
}
absl::Status Engine::Sleep(SleepDepth depth, absl::Time deadline) { return impl_->Sleep(depth, deadline); }
absl::Status Engine::Wake(absl::Time deadline) { return impl_->Wake(deadline); }
EngineStatus Engine::status() const { return impl_->status(); }
const std::optional<CudaPlacement>& Engine::cuda() const { return impl_->options().cuda; }
int64_t Engine::context_tokens_max() const { return impl_->options().context_tokens_max; }

}  // namespace warpsmith
