#include "rollout_workers/serving/completion_service.h"

#include <pthread.h>

#include <random>
#include <utility>

#include "core/base/check.h"
#include "core/rpc/status.h"

namespace warpsmith::serving {
namespace {

constexpr size_t kEventsMax = 4096;
constexpr absl::Duration kComeBack = absl::Seconds(1);
// How long the engine waits for the answering thread. That thread never waits, so after this something is broken.
constexpr absl::Duration kAnsweringTimeout = absl::Minutes(5);

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

GenerationJob ToGenerationJob(const CompletionJob& job, int64_t id, uint64_t policy_version) {
  GenerationJob generation{.id = id,
                           .sampling = job.sampling,
                           .policy_version = policy_version,
                           .reports_tokens = job.reports_tokens,
                           .num_top_tokens = job.num_top_tokens};
  for (size_t prompt = 0; prompt < job.prompts.size(); ++prompt) {
    GenerationGroup group{.task_index = static_cast<int>(prompt), .prompt_token_ids = job.prompts[prompt]};
    const uint64_t seed = job.seed.has_value() ? *job.seed : RandomSeed();
    for (int choice = 0; choice < job.num_choices; ++choice) {
      group.samples.push_back({.sample_index = choice, .seed = SampleSeed(seed, "", choice)});
    }
    generation.groups.push_back(std::move(group));
  }
  return generation;
}

}  // namespace

CompletionService::CompletionService(const ModelConfig& config, const EngineOptions& options,
                                     std::unique_ptr<Batch> batch, std::function<void()> on_lost)
    : events_(kEventsMax),
      engine_(std::make_unique<Engine>(
          config, options,
          EngineEvents{.on_sample = [this](FinishedSample sample) { Enqueue(std::move(sample)); },
                       .on_failure = [this](FailedJob job) { Enqueue(std::move(job)); },
                       .on_token = [this](DrawnToken token) { Enqueue(std::move(token)); },
                       .on_lost = std::move(on_lost)},
          std::move(batch))),
      answering_([this] { Answer(); }) {}

CompletionService::~CompletionService() {
  engine_.reset();  // while its events are still taken
  events_.Close();
  answering_.join();
}

absl::StatusOr<int64_t> CompletionService::Start(const CompletionJob& job, CompletionEvents events) {
  auto running = std::make_shared<Running>();
  running->events = std::move(events);
  running->num_choices = job.num_choices;
  running->reports_tokens = job.reports_tokens;
  running->num_open = static_cast<int>(job.prompts.size()) * job.num_choices;
  running->open.assign(static_cast<size_t>(running->num_open), true);
  int64_t id = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("the server is stopping");
    id = ++last_id_;
    running_.emplace(id, std::move(running));  // before its first event can come
  }
  const absl::Status status = engine_->Submit(ToGenerationJob(job, id, engine_->status().policy_version));
  if (status.ok()) return id;
  Forget(id);
  return absl::IsResourceExhausted(status) ? BackPressureError(std::string(status.message()), kComeBack)
                                           : status;
}

void CompletionService::Cancel(int64_t id) {
  Forget(id);
  engine_->Cancel(id);
}

int CompletionService::Drain(absl::Duration timeout) {
  std::vector<int64_t> late;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    mutex_.AwaitWithTimeout(absl::Condition(this, &CompletionService::NothingRuns), timeout);
    for (const auto& [id, running] : running_) late.push_back(id);
  }
  for (const int64_t id : late) {
    engine_->Cancel(id);
    Enqueue(FailedJob{.job_id = id, .status = absl::UnavailableError("the server stopped before the end")});
  }
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &CompletionService::NothingRuns), kAnsweringTimeout);
  return static_cast<int>(late.size());
}

void CompletionService::Enqueue(Event event) {
  WS_CHECK(events_.Push(std::move(event), kAnsweringTimeout)) << "the answering thread takes nothing";
}

void CompletionService::Answer() {
  pthread_setname_np(pthread_self(), "ws-answer");
  while (const std::optional<Event> event = events_.Pop(absl::InfiniteDuration())) {
    std::visit([this](const auto& each) { Tell(each); }, *event);
  }
}

void CompletionService::Tell(const DrawnToken& token) {
  const std::shared_ptr<Running> running = Find(token.job_id);
  if (running == nullptr) return;
  const int choice = token.task_index * running->num_choices + token.sample_index;
  if (!running->open[choice]) return;
  if (running->events.on_token(choice, {token.token_id, token.log_prob, token.top_tokens})) return;
  engine_->CancelSample(token.job_id, token.task_index, token.sample_index);
  EndChoice(token.job_id, choice, running.get());
}

void CompletionService::Tell(const FinishedSample& sample) {
  const std::shared_ptr<Running> running = Find(sample.job_id);
  if (running == nullptr) return;
  const int choice = sample.task_index * running->num_choices + sample.sample_index;
  bool is_open = running->open[choice];
  for (size_t i = 0; is_open && !running->reports_tokens && i < sample.answer_token_ids.size(); ++i) {
    ChosenToken token{sample.answer_token_ids[i], sample.log_probs[i]};
    if (!sample.top_tokens.empty()) token.top_tokens = sample.top_tokens[i];
    is_open = running->events.on_token(choice, token);
  }
  if (is_open) running->events.on_end(choice, sample.finish_reason);
  if (running->open[choice]) EndChoice(sample.job_id, choice, running.get());
}

void CompletionService::Tell(const FailedJob& failure) {
  const std::shared_ptr<Running> running = Find(failure.job_id);
  if (running == nullptr) return;
  running->events.on_failure(failure.status);
  Forget(failure.job_id);
}

std::shared_ptr<CompletionService::Running> CompletionService::Find(int64_t id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : found->second;
}

void CompletionService::Forget(int64_t id) {
  std::shared_ptr<Running> forgotten;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  forgotten = std::move(found->second);
  running_.erase(found);
}

void CompletionService::EndChoice(int64_t id, int choice, Running* running) {
  running->open[choice] = false;
  if (--running->num_open == 0) Forget(id);
}

}  // namespace warpsmith::serving
