#include "rollout_workers/worker.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/status.h"
#include "rollout_workers/task_prompt.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kComeBack = absl::Seconds(1);
// How long the engine waits for the collector. The collector never waits, so after this something is broken.
constexpr absl::Duration kCollectorTimeout = absl::Minutes(5);

// Of one request that is complete, for the log.
std::string Summary(const HeldRequest& request) {
  int64_t num_samples = 0, num_tokens = 0, num_unscorable = 0;
  for (const auto& response : request.assembly.completed()) {
    for (const v1::Transition& transition : response->group().transitions()) {
      ++num_samples;
      num_tokens += transition.answer_token_ids_size();
      num_unscorable += transition.grade().verdict() == v1::VERDICT_UNSCORABLE;
    }
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - request.started);
  return absl::StrFormat(
      "request %s: %d groups, %d samples, %d tokens in %.2f s (%.0f tokens/s); %d grades shared, %d "
      "unscorable",
      Escape(request.assembly.request().request_id(), 128), request.assembly.completed().size(), num_samples,
      num_tokens, seconds, static_cast<double>(num_tokens) / seconds, request.assembly.num_grades_shared(),
      num_unscorable);
}

bool SameTasks(const v1::GenerateGroupsRequest& a, const v1::GenerateGroupsRequest& b) {
  return std::equal(
      a.tasks().begin(), a.tasks().end(), b.tasks().begin(), b.tasks().end(),
      [](const v1::Task& x, const v1::Task& y) { return x.SerializeAsString() == y.SerializeAsString(); });
}

// Whether `request` can be answered with all that `held` has and will have. A client that asks again for
// UNSCORABLE answers wants them graded again, also while the rest is under way.
bool MayJoin(const HeldRequest& held, const v1::GenerateGroupsRequest& request, const EngineStatus& status) {
  return held.settings_digest == SettingsDigest(request) && held.weights_sha256 == status.weights_sha256 &&
         SameTasks(held.assembly.request(), request) && !held.assembly.HasUnscorable();
}

absl::Status CheckVersion(uint64_t policy_version, const EngineStatus& status) {
  RETURN_IF_ERROR(status.lost);
  if (status.loaded && status.policy_version == policy_version) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "policy_version ", policy_version, " is asked for, and ",
      status.loaded ? absl::StrCat("version ", status.policy_version, " is loaded") : "no weights are loaded",
      "; prepare and commit it first"));
}

}  // namespace

Worker::Worker(const ModelConfig& config, EngineOptions engine_options, std::unique_ptr<Batch> batch,
               WorkerOptions options, const Prompts* prompts, std::shared_ptr<grpc::Channel> reward_channel,
               const std::string& reward_address, GradeClientOptions grade_options)
    : options_(options),
      prompts_(prompts),
      table_(options.table),
      events_(engine_options.samples_max),
      grades_(std::move(reward_channel), reward_address, grade_options),
      engine_(config, std::move(engine_options),
              {.on_sample =
                   [this](FinishedSample sample) {
                     Enqueue({.sample = std::move(sample), .failure = std::nullopt});
                   },
               .on_failure =
                   [this](FailedJob failure) { Enqueue({.sample = {}, .failure = std::move(failure)}); },
               .on_lost = options.on_lost},
              std::move(batch)),
      collector_([this] { Collect(); }) {}

Worker::~Worker() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  events_.Close();
  collector_.join();
}

absl::StatusOr<Worker::Reader> Worker::Join(const v1::GenerateGroupsRequest& request,
                                            std::function<void()> wake) {
  RETURN_IF_ERROR(CheckRequest(request, options_.limits));
  const int64_t prompt_tokens_max = engine_.context_tokens_max() - request.sampling().answer_tokens_max();
  if (prompt_tokens_max < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.answer_tokens_max is ", request.sampling().answer_tokens_max(),
                     " and the context holds ", engine_.context_tokens_max(), ": no room for a prompt"));
  }
  std::vector<absl::StatusOr<std::vector<int32_t>>> prompts;
  for (const v1::Task& task : request.tasks()) {
    prompts.push_back(TaskPrompt(*prompts_, task, prompt_tokens_max));
  }

  Wakers displaced;
  absl::StatusOr<Reader> reader = [&]() -> absl::StatusOr<Reader> {
    absl::MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("The worker drains; ask another");
    const EngineStatus status = engine_.status();
    RETURN_IF_ERROR(CheckVersion(request.policy_version(), status));
    std::shared_ptr<HeldRequest> held = table_.Find(request.request_id());
    const bool joins = held != nullptr && MayJoin(*held, request, status);
    const bool replaces = held != nullptr && !joins;
    if (!joins) held = MakeRequest(request, prompts, status, &displaced);
    absl::Status started;
    if (!held->running() && !held->assembly.complete()) started = StartWork(*held);
    if (!started.ok()) {
      if (replaces) table_.Insert(held);  // what it took over is for the next call
      return started;
    }
    const auto place = held->readers.insert(held->readers.end(), std::move(wake));
    if (!joins) table_.Insert(held);
    return Reader{.request = std::move(held), .wake = place};
  }();
  for (const auto& displaced_wake : displaced) displaced_wake();
  return reader;
}

// A new request with what the one held under its id, which it displaces, has of the same tasks.
std::shared_ptr<HeldRequest> Worker::MakeRequest(
    const v1::GenerateGroupsRequest& request,
    const std::vector<absl::StatusOr<std::vector<int32_t>>>& prompts, const EngineStatus& status,
    Wakers* displaced) {
  auto made = std::make_shared<HeldRequest>(GroupAssembly(request, prompts));
  made->settings_digest = SettingsDigest(request);
  made->weights_sha256 = status.weights_sha256;
  const std::shared_ptr<HeldRequest> old = table_.Find(request.request_id());
  if (old == nullptr) return made;
  if (old->settings_digest == made->settings_digest && old->weights_sha256 == made->weights_sha256) {
    made->assembly.Adopt(old->assembly);
  }
  StopWork(*old);
  old->failure = absl::AbortedError("A later call with the same request_id took over");
  *displaced = WakersOf(*old);
  table_.Erase(request.request_id());
  return made;
}

absl::Status Worker::StartWork(HeldRequest& request) {
  if (table_.num_running() >= options_.num_requests_max) {
    return BackPressureError(absl::StrCat(table_.num_running(), " requests are under way, the limit"),
                             kComeBack);
  }
  GenerationJob job = request.assembly.MissingSamples();
  job.id = last_job_id_ + 1;
  if (!job.groups.empty()) {
    const absl::Status submitted = engine_.Submit(std::move(job));
    if (absl::IsResourceExhausted(submitted))
      return BackPressureError(std::string(submitted.message()), kComeBack);
    RETURN_IF_ERROR(submitted);
  }
  request.job_id = ++last_job_id_;
  request.started = absl::Now();
  request.failure = absl::OkStatus();
  for (v1::GradeRequest& grade : request.assembly.MissingGrades())
    RequestGrade(request.job_id, std::move(grade));
  return absl::OkStatus();
}

void Worker::StopWork(HeldRequest& request) {
  if (!request.running()) return;
  engine_.Cancel(request.job_id);
  grades_.Cancel(request.job_id);
  request.job_id = 0;
}

void Worker::RequestGrade(int64_t job_id, v1::GradeRequest request) {
  const std::string grade_request_id = request.request_id();
  grades_.Submit(job_id, std::move(request), [this, job_id, grade_request_id](const v1::Grade& grade) {
    TakeGrade(job_id, grade_request_id, grade);
  });
}

Worker::Next Worker::TakeNext(Reader& reader) {
  absl::MutexLock lock(&mutex_);
  const HeldRequest& request = *reader.request;
  const auto& completed = request.assembly.completed();
  if (reader.num_read < completed.size()) return {.response = completed[reader.num_read++]};
  if (request.assembly.complete()) return {.end = absl::OkStatus()};
  if (!request.failure.ok()) return {.end = request.failure};
  return {};
}

void Worker::Leave(Reader reader) {
  absl::MutexLock lock(&mutex_);
  reader.request->readers.erase(reader.wake);
  if (!reader.request->readers.empty()) return;
  if (reader.request->running()) {
    LogInfo(absl::StrCat("request ", Escape(reader.request->assembly.request().request_id(), 128),
                         " was left with ", reader.request->assembly.completed().size(), " of ",
                         reader.request->assembly.request().tasks_size(), " groups"));
    StopWork(*reader.request);
  }
  table_.EvictIdle();
}

int Worker::Drain(absl::Duration timeout) {
  Wakers wakers;
  int num_cancelled = 0;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    const auto idle = +[](RequestTable* table) { return table->num_running() == 0; };
    mutex_.AwaitWithTimeout(absl::Condition(idle, &table_), timeout);
    for (const auto& request : table_.all()) {
      if (!request->running()) continue;
      StopWork(*request);
      request->failure =
          absl::UnavailableError("The worker drained before the request was complete; ask another");
      num_cancelled +=
          request->assembly.request().tasks_size() - static_cast<int>(request->assembly.completed().size());
      for (auto& wake : WakersOf(*request)) wakers.push_back(std::move(wake));
    }
  }
  for (const auto& wake : wakers) wake();
  return num_cancelled;
}

bool Worker::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

Worker::Wakers Worker::WakersOf(const HeldRequest& request) {
  return {request.readers.begin(), request.readers.end()};
}

void Worker::Enqueue(Event event) {
  const bool taken = events_.Push(std::move(event), kCollectorTimeout);
  if (taken) return;
  absl::MutexLock lock(&mutex_);
  WS_CHECK(closing_) << events_.size() << " samples wait to be collected";
}

void Worker::Collect() {
  pthread_setname_np(pthread_self(), "ws-collect");
  while (!events_.Finished()) {
    std::optional<Event> event = events_.Pop(absl::InfiniteDuration());
    if (!event.has_value()) continue;
    if (event->failure.has_value()) {
      TakeFailure(*event->failure);
    } else {
      TakeSample(std::move(event->sample));
    }
  }
}

void Worker::TakeSample(FinishedSample sample) {
  const std::string answer = prompts_->tokenizer().Decode(sample.answer_token_ids, DecodeSpecial::kSkip);
  Wakers wakers;
  {
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<HeldRequest> request = table_.FindJob(sample.job_id);
    if (request == nullptr) return;  // left or replaced in the meantime
    const size_t num_before = request->assembly.completed().size();
    if (std::optional<v1::GradeRequest> grade = request->assembly.AddSample(sample, answer)) {
      RequestGrade(sample.job_id, *std::move(grade));
    }
    EndIfComplete(*request);
    if (request->assembly.completed().size() > num_before) wakers = WakersOf(*request);
  }
  for (const auto& wake : wakers) wake();
}

void Worker::TakeGrade(int64_t job_id, const std::string& grade_request_id, const v1::Grade& grade) {
  Wakers wakers;
  {
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<HeldRequest> request = table_.FindJob(job_id);
    if (request == nullptr) return;
    const size_t num_before = request->assembly.completed().size();
    request->assembly.AddGrade(grade_request_id, grade, absl::Now());
    EndIfComplete(*request);
    if (request->assembly.completed().size() > num_before) wakers = WakersOf(*request);
  }
  for (const auto& wake : wakers) wake();
}

void Worker::EndIfComplete(HeldRequest& request) {
  if (!request.assembly.complete()) return;
  request.job_id = 0;
  LogInfo(Summary(request));
}

void Worker::TakeFailure(const FailedJob& failure) {
  Wakers wakers;
  {
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<HeldRequest> request = table_.FindJob(failure.job_id);
    if (request == nullptr) return;
    LogError(absl::StrCat("request ", Escape(request->assembly.request().request_id(), 128),
                          " failed: ", failure.status.ToString()));
    StopWork(*request);
    request->failure = failure.status;
    wakers = WakersOf(*request);
  }
  for (const auto& wake : wakers) wake();
}

}  // namespace warpsmith
