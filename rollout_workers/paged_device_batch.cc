#include "rollout_workers/paged_device_batch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Longest time that the engine reads no mail because another process has the device.
constexpr absl::Duration kTurnWait = absl::Milliseconds(100);

paged::TokenSampling ToTokenSampling(const SamplingParameters& sampling) {
  return {.top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .temperature = static_cast<float>(sampling.temperature),
          .top_k = sampling.top_k};
}

absl::Status GiveWeights(const LoadedWeights& weights, device::StepDevice& device) {
  if (weights.source != nullptr) return device.TakeWeights(*weights.source);
  if (weights.parameters != nullptr) return device.SetParameters(*weights.parameters);
  if (!weights.hugging_face_directory.empty()) return device.LoadHuggingFace(weights.hugging_face_directory);
  if (weights.random_seed.has_value()) return device.FillRandom(*weights.random_seed);
  return absl::InvalidArgumentError(absl::StrCat("Version ", weights.policy_version, " names no weights"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PagedDeviceBatch>> PagedDeviceBatch::Create(
    paged::PagedBatchOptions options, std::unique_ptr<device::StepDevice> device, DeviceTurns turns) {
  options.num_pages = device->num_pages();
  const int64_t context_pages = (options.context_tokens_max + options.page_tokens - 1) / options.page_tokens;
  if (options.num_pages <= context_pages) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The KV cache has ", options.num_pages, " pages and a context of ", options.context_tokens_max,
        " tokens takes ", context_pages, " and one for padding: give more pages or a shorter context"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<paged::PagedBatch> paged, paged::PagedBatch::Create(options, 0));
  return std::unique_ptr<PagedDeviceBatch>(
      new PagedDeviceBatch(std::move(paged), std::move(device), std::move(turns)));
}

PagedDeviceBatch::PagedDeviceBatch(std::unique_ptr<paged::PagedBatch> paged,
                                   std::unique_ptr<device::StepDevice> device, DeviceTurns turns)
    : device_(std::move(device)), paged_(std::move(paged)), turns_(std::move(turns)) {}

PagedDeviceBatch::~PagedDeviceBatch() { device_->DropSteps(); }

absl::Status PagedDeviceBatch::SetWeights(const LoadedWeights& weights, paged::EntriesOnChange entries) {
  WS_CHECK(paged_->num_steps_in_flight() == 0 && !paged_->asleep())
      << "steps are in flight, or the device sleeps, while weights are swapped";
  WS_CHECK(empty() || entries != paged::EntriesOnChange::kRequireNone)
      << num_active() << " samples decode while weights are swapped";
  if (requests_.empty()) version_of_load_.clear();
  RETURN_IF_ERROR(paged_->ChangeWeights(++num_loads_, entries));
  version_of_load_[num_loads_] = weights.policy_version;
  has_weights_ = false;
  absl::Status given;
  try {
    given = GiveWeights(weights, *device_);
  } catch (const std::exception& error) {  // LibTorch's
    given = absl::InternalError(absl::StrCat("Taking the weights of version ", weights.policy_version,
                                             " failed: ", Escape(error.what(), 512)));
  }
  has_weights_ = given.ok();
  if (!lost().ok()) new LoadedWeights(weights);  // a device that is lost may still read them
  return given;
}

absl::Status PagedDeviceBatch::lost() const {
  const absl::Status status = device_->lost();
  return status.ok() ? status : absl::UnavailableError(status.message());
}

Batch::Outcome PagedDeviceBatch::Settle() {
  Outcome outcome;
  SettleInto(&outcome);
  return outcome;
}

void PagedDeviceBatch::SettleInto(Outcome* outcome) {
  while (paged_->num_steps_in_flight() > 0) {
    if (const absl::Status status = CompleteOldest(outcome); !status.ok()) FailAll(status, outcome);
  }
  if (!lost().ok()) FailAll(lost(), outcome);
}

bool PagedDeviceBatch::HoldDevice() {
  return !absl::IsDeadlineExceeded(turns_.Take(absl::Now() + kTurnWait));
}

void PagedDeviceBatch::Rest() {
  if (paged_->num_steps_in_flight() == 0) turns_.Give();
}

absl::Status PagedDeviceBatch::Sleep(SleepDepth depth) {
  RETURN_IF_ERROR(paged_->Sleep());
  device_->FreePages();
  if (depth == SleepDepth::kPages) return absl::OkStatus();
  has_weights_ = false;
  device_->FreeWeights();
  return absl::OkStatus();
}

absl::Status PagedDeviceBatch::Wake() {
  RETURN_IF_ERROR(device_->AllocateWeights());
  RETURN_IF_ERROR(device_->AllocatePages());
  paged_->Wake();
  return absl::OkStatus();
}

Batch::Outcome PagedDeviceBatch::GiveUp(const absl::Status& status) {
  Outcome outcome;
  LogWarning(absl::StrCat(requests_of_job_.size(), " jobs fail: ", std::string(status.message())));
  EndAll(status, &outcome);
  return outcome;
}

void PagedDeviceBatch::Add(GenerationJob job) {
  for (GenerationGroup& group : job.groups) {
    if (group.samples.empty()) continue;
    const absl::Status status = AddGroup(job, std::move(group));
    if (status.ok()) continue;
    Remove(job.id);
    refused_.push_back({.job_id = job.id, .status = status});
    return;
  }
}

absl::Status PagedDeviceBatch::AddGroup(const GenerationJob& job, GenerationGroup group) {
  const int64_t id = ++last_request_id_;
  Request request{.job_id = job.id,
                  .task_index = group.task_index,
                  .policy_version = job.policy_version,
                  .reports_tokens = job.reports_tokens,
                  .num_left = static_cast<int>(group.samples.size())};
  paged::PagedRequest paged{.id = id,
                            .prompt_token_ids = std::move(group.prompt_token_ids),
                            .sampling = ToTokenSampling(job.sampling),
                            .answer_tokens_max = job.sampling.answer_tokens_max,
                            .num_top_tokens = job.num_top_tokens};
  for (const WantedSample& sample : group.samples) {
    request.sample_indexes.push_back(sample.sample_index);
    paged.seeds.push_back(sample.seed);
  }
  request.has_token.resize(request.sample_indexes.size());
  RETURN_IF_ERROR(paged_->Submit(std::move(paged)));
  requests_.emplace(id, std::move(request));
  requests_of_job_[job.id].push_back(id);
  return absl::OkStatus();
}

void PagedDeviceBatch::Remove(int64_t job_id) {
  std::erase_if(refused_, [&](const FailedJob& job) { return job.job_id == job_id; });
  const auto found = requests_of_job_.find(job_id);
  if (found == requests_of_job_.end()) return;
  for (const int64_t id : found->second) {
    paged_->Abort(id);
    requests_.erase(id);
  }
  requests_of_job_.erase(found);
}

void PagedDeviceBatch::RemoveSample(const SamplePlace& place) {
  const auto found = requests_of_job_.find(place.job_id);
  if (found == requests_of_job_.end()) return;
  for (const int64_t id : found->second) {
    const auto request = requests_.find(id);
    if (request == requests_.end() || request->second.task_index != place.task_index) continue;
    const std::vector<int>& indexes = request->second.sample_indexes;
    const auto sample = std::find(indexes.begin(), indexes.end(), place.sample_index);
    if (sample == indexes.end()) continue;
    const auto index = static_cast<int>(sample - indexes.begin());
    if (request->second.has_token[index] && paged_->FinishEarly(id, index, 0).ok()) CountLess(request);
    return;
  }
}

int PagedDeviceBatch::num_waiting() const {
  const paged::PagedBatchStatus status = paged_->status();
  return status.num_waiting + status.num_paused;
}

Batch::Outcome PagedDeviceBatch::Step() {
  Outcome outcome;
  outcome.failed = std::exchange(refused_, {});
  const absl::Time began = absl::Now();
  const absl::Status taken = is_ready() ? turns_.Take(began + kTurnWait) : absl::OkStatus();
  outcome.waited = absl::Now() - began;
  if (absl::IsDeadlineExceeded(taken)) return outcome;  // the engine reads its mail, and steps again
  if (!taken.ok()) {
    FailAll(taken, &outcome);
    return outcome;
  }
  StepInTurn(&outcome);
  if (turns_.held() && turns_.IsWanted()) {
    SettleInto(&outcome);
    turns_.Give();
  }
  return outcome;
}

void PagedDeviceBatch::StepInTurn(Outcome* outcome) {
  const absl::StatusOr<bool> launched = is_ready() ? LaunchNext() : false;
  if (!launched.ok()) return FailAll(launched.status(), outcome);
  const int num_before = paged_->num_steps_in_flight() - *launched;
  if (num_before > 0) {
    if (const absl::Status status = CompleteOldest(outcome); !status.ok()) FailAll(status, outcome);
  } else if (!*launched && is_ready() && !paged_->empty()) {
    FailAll(
        absl::InternalError(absl::StrCat(
            "No step can be planned for ", num_waiting(), " samples that wait and ", num_active(),
            " that have a slot: ask again; if it comes again, give the engine more of the GPU's memory or "
            "fewer slots, and report it with these numbers")),
        outcome);
  }
  const int64_t num_prefilled = paged_->status().num_tokens_prefilled;
  outcome->num_prefilled = static_cast<int>(num_prefilled - std::exchange(num_prefilled_, num_prefilled));
}

absl::StatusOr<bool> PagedDeviceBatch::LaunchNext() {
  plan_ = paged_->Plan(std::move(plan_));
  if (plan_.empty()) return false;
  const absl::Time now = absl::Now();
  for (const paged::QueryOwner& owner : plan_.owners) {
    absl::Time& started = requests_.at(owner.request_id).started;
    started = std::min(started, now);
  }
  RETURN_IF_ERROR(device_->Launch(plan_));
  return true;
}

absl::Status PagedDeviceBatch::CompleteOldest(Outcome* outcome) {
  ASSIGN_OR_RETURN(const std::vector<paged::TokenResult> results, device_->AwaitOldest());
  const absl::Time now = absl::Now();
  paged::StepOutcome step = paged_->Complete(results);
  outcome->num_steps += 1;
  outcome->num_drawn += static_cast<int>(step.tokens.size());
  for (paged::AnswerToken& token : step.tokens) Report(std::move(token), outcome);
  for (paged::FinishedAnswer& answer : step.finished) Report(std::move(answer), now, outcome);
  for (const int64_t request_id : step.broken_request_ids) FailBroken(request_id, outcome);
  return absl::OkStatus();
}

void PagedDeviceBatch::Report(paged::AnswerToken token, Outcome* outcome) {
  Request& request = requests_.at(token.request_id);
  request.has_token[token.sample_index] = true;
  if (!request.reports_tokens) return;
  outcome->drawn.push_back({.job_id = request.job_id,
                            .task_index = request.task_index,
                            .sample_index = request.sample_indexes[token.sample_index],
                            .token_id = token.token_id,
                            .log_prob = token.log_prob,
                            .top_tokens = std::move(token.top_tokens)});
}

void PagedDeviceBatch::Report(paged::FinishedAnswer answer, absl::Time now, Outcome* outcome) {
  const auto found = requests_.find(answer.request_id);
  WS_CHECK(found != requests_.end()) << "an answer came of request " << answer.request_id;
  const Request& request = found->second;
  std::vector<uint64_t> token_versions = TokenVersions(answer, request.policy_version);
  outcome->finished.push_back({.job_id = request.job_id,
                               .task_index = request.task_index,
                               .sample_index = request.sample_indexes[answer.sample_index],
                               .seed = answer.seed,
                               .policy_version = request.policy_version,
                               .answer_token_ids = std::move(answer.token_ids),
                               .log_probs = std::move(answer.log_probs),
                               .top_tokens = std::move(answer.top_tokens),
                               .token_policy_versions = std::move(token_versions),
                               .finish_reason = answer.end == paged::AnswerEnd::kStopToken
                                                    ? FinishReason::kStop
                                                    : FinishReason::kLength,
                               .started = request.started,
                               .finished = now});
  CountLess(found);
}

// Empty where all are `expected`.
std::vector<uint64_t> PagedDeviceBatch::TokenVersions(const paged::FinishedAnswer& answer,
                                                      uint64_t expected) const {
  std::vector<uint64_t> versions;
  for (const uint64_t load : answer.policy_versions) versions.push_back(version_of_load_.at(load));
  const auto is_other = [expected](uint64_t version) { return version != expected; };
  if (std::none_of(versions.begin(), versions.end(), is_other)) versions.clear();
  return versions;
}

void PagedDeviceBatch::FailBroken(int64_t request_id, Outcome* outcome) {
  const auto found = requests_.find(request_id);
  if (found == requests_.end()) return;  // went with another request of its job
  const int64_t job_id = found->second.job_id;
  outcome->failed.push_back({.job_id = job_id,
                             .status = absl::InternalError(absl::StrCat(
                                 "The logits of version ", version_of_load_.at(paged_->policy_version()),
                                 " are not finite; publish sound weights"))});
  Remove(job_id);
}

// What the device had computed is not known any more, so no sample can go on.
void PagedDeviceBatch::FailAll(const absl::Status& failure, Outcome* outcome) {
  device_->DropSteps();
  paged_->DropSteps();
  const absl::Status status = lost().ok() ? failure : lost();
  if (requests_of_job_.empty()) return;
  LogError(
      absl::StrCat(requests_of_job_.size(), " jobs fail with their device: ", std::string(status.message())));
  EndAll(status, outcome);
}

void PagedDeviceBatch::EndAll(const absl::Status& status, Outcome* outcome) {
  while (!requests_of_job_.empty()) {
    const int64_t job_id = requests_of_job_.begin()->first;
    outcome->failed.push_back({.job_id = job_id, .status = status});
    Remove(job_id);
  }
}

// One sample of a request is gone; the request with its last, and the job with its last request.
void PagedDeviceBatch::CountLess(Requests::iterator request) {
  if (--request->second.num_left > 0) return;
  const auto job = requests_of_job_.find(request->second.job_id);
  std::erase(job->second, request->first);
  if (job->second.empty()) requests_of_job_.erase(job);
  requests_.erase(request);
}

}  // namespace warpsmith
