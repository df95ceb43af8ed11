#include "rollout_workers/grade_client.h"

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "proto/device_names.h"
#include "proto/language_names.h"

namespace warpsmith {
namespace {

// What to make of the end of an attempt. A service that died or hangs, and one that broke inside, may be fine
// the next time: the request_id makes asking again safe.
absl::Status ForRetries(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kDeadlineExceeded && status.code() != absl::StatusCode::kUnknown &&
      status.code() != absl::StatusCode::kInternal) {
    return status;
  }
  return absl::UnavailableError(status.ToString());
}

// Code and message, without the bytes of the details.
std::string Describe(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                      Escape(std::string(status.message()), 512));
}

template <typename Values, typename Value>
bool Has(const Values& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<int> DevicesOf(const v1::Capabilities& capabilities) {
  if (capabilities.devices().empty()) return {v1::DEVICE_CPU};  // of a service that does not know of others
  return {capabilities.devices().begin(), capabilities.devices().end()};
}

// "it grades cpp, kernelbench_python, on cpu"
std::string GradedText(const v1::Capabilities& capabilities) {
  std::vector<std::string> languages, devices;
  for (const int value : capabilities.languages()) {
    languages.push_back(LanguageName(static_cast<v1::CandidateLanguage>(value)));
  }
  for (const int value : DevicesOf(capabilities)) {
    devices.push_back(DeviceName(static_cast<v1::Device>(value)));
  }
  return absl::StrCat("it grades ", absl::StrJoin(languages, ", "), ", on ", absl::StrJoin(devices, ", "));
}

absl::Status CheckNeeds(const ServiceNeeds& needs, const v1::Capabilities& capabilities) {
  if (!needs.formula.empty() && !Has(capabilities.formulas(), needs.formula)) {
    return absl::InvalidArgumentError(absl::StrCat("it has no formula \"", Escape(needs.formula, 128),
                                                   "\"; it has ",
                                                   absl::StrJoin(capabilities.formulas(), ", ")));
  }
  if (needs.language != v1::CANDIDATE_LANGUAGE_UNSPECIFIED &&
      !Has(capabilities.languages(), static_cast<int>(needs.language))) {
    return absl::FailedPreconditionError(
        absl::StrCat("it grades no ", LanguageName(needs.language), "; ", GradedText(capabilities)));
  }
  for (const v1::Device device : needs.devices) {
    if (Has(DevicesOf(capabilities), static_cast<int>(device))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("it grades nothing on ", DeviceName(device), "; ", GradedText(capabilities)));
  }
  return absl::OkStatus();
}

}  // namespace

struct GradeClient::Call {
  explicit Call(const RetryOptions& options) : policy(options) {}

  const RetryPolicy policy;
  int64_t owner = 0;
  v1::GradeRequest request;
  v1::GradeResponse response;
  Done done;
  RetryCounts retries;
  absl::Time first_attempt;
  // The others are guarded by mutex_. One context an attempt, one alarm a wait: null before the first.
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::Alarm> retry_alarm;
  bool cancelled = false;
};

GradeClient::GradeClient(std::shared_ptr<grpc::Channel> channel, std::string service_name,
                         GradeClientOptions options)
    : stub_(v1::RewardService::NewStub(std::move(channel))),
      service_name_(std::move(service_name)),
      options_(options) {}

GradeClient::~GradeClient() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  queued_.clear();
  for (const CallPointer& call : started_) CancelStarted(*call);
  mutex_.Await(absl::Condition(
      +[](std::set<CallPointer>* started) { return started->empty(); }, &started_));
}

void GradeClient::Submit(int64_t owner, v1::GradeRequest request, Done done) {
  // A service that is full refuses many at once: each comes back at a time of its own.
  RetryOptions retries = options_.retries;
  retries.seed += num_submitted_++;
  auto call = std::make_shared<Call>(retries);
  call->owner = owner;
  call->request = std::move(request);
  call->done = std::move(done);
  std::vector<CallPointer> ready;
  {
    absl::MutexLock lock(&mutex_);
    queued_.push_back(std::move(call));
    ready = TakeReady();
  }
  StartAttempts(ready);
}

absl::StatusOr<std::string> GradeClient::CheckService(const ServiceNeeds& needs,
                                                      absl::Duration timeout) const {
  grpc::ClientContext context;
  SetTimeout(&context, timeout);
  context.set_wait_for_ready(true);
  v1::GetCapabilitiesResponse response;
  const std::string service = absl::StrCat("the reward service at ", service_name_);
  absl::Status status = [&] {
    const WaitLines waiting(service, timeout, options_.lines);
    return FromGrpcStatus(stub_->GetCapabilities(&context, {}, &response));
  }();
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrCat(service, " does not answer: ", status.message()));
  }
  const v1::Capabilities& capabilities = response.capabilities();
  if (status.ok()) status = CheckNeeds(needs, capabilities);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(service, ": ", status.message()));
  return needs.formula.empty() ? capabilities.default_formula() : needs.formula;
}

void GradeClient::Cancel(int64_t owner) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(queued_, [&](const CallPointer& call) { return call->owner == owner; });
  for (const CallPointer& call : started_) {
    if (call->owner == owner) CancelStarted(*call);
  }
}

// An attempt ends early, a wait is cut short; either way Finish sees the mark and forgets the call.
void GradeClient::CancelStarted(Call& call) {
  call.cancelled = true;
  if (call.context != nullptr) call.context->TryCancel();
  if (call.retry_alarm != nullptr) call.retry_alarm->Cancel();
}

// Moves what may start from queued_ to started_; the caller starts it, without the lock.
std::vector<GradeClient::CallPointer> GradeClient::TakeReady() {
  std::vector<CallPointer> ready;
  while (!closing_ && !queued_.empty() && static_cast<int>(started_.size()) < options_.in_flight_max) {
    started_.insert(queued_.front());
    ready.push_back(std::move(queued_.front()));
    queued_.pop_front();
  }
  return ready;
}

void GradeClient::StartAttempts(const std::vector<CallPointer>& calls) {
  for (const CallPointer& call : calls) {
    call->first_attempt = absl::Now();
    StartAttempt(call);
  }
}

void GradeClient::StartAttempt(const CallPointer& call) {
  grpc::ClientContext* context = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    call->context = std::make_unique<grpc::ClientContext>();
    if (call->cancelled)
      call->context->TryCancel();  // then it ends at once, and in the same way as any other
    context = call->context.get();
  }
  SetTimeout(context, options_.attempt_timeout);
  call->response.Clear();
  stub_->async()->Grade(context, &call->request, &call->response,
                        [this, call](grpc::Status status) { EndAttempt(call, FromGrpcStatus(status)); });
}

void GradeClient::EndAttempt(const CallPointer& call, const absl::Status& status) {
  if (!status.ok() && WaitForRetry(call, status)) return;
  Finish(call, status);
}

// False when there is to be no other attempt.
bool GradeClient::WaitForRetry(const CallPointer& call, const absl::Status& status) {
  const absl::Status failure = ForRetries(status);
  call->retries.Add(failure);
  const std::optional<absl::Duration> delay =
      call->policy.NextDelay(call->retries, failure, absl::Now() - call->first_attempt);
  absl::MutexLock lock(&mutex_);
  if (call->cancelled || !delay.has_value()) return false;
  if (!std::exchange(outage_logged_, true)) {
    LogWarning(absl::StrCat("reward service ", service_name_, ": ", Describe(status), "; trying again"));
  }
  call->retry_alarm = std::make_unique<grpc::Alarm>();
  call->retry_alarm->Set(absl::ToChronoTime(absl::Now() + *delay), [this, call](bool due) {
    if (due) {
      StartAttempt(call);
    } else {
      Finish(call, absl::CancelledError("cancelled while waiting to try again"));
    }
  });
  return true;
}

void GradeClient::Finish(const CallPointer& call, const absl::Status& status) {
  bool cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    cancelled = call->cancelled;
    if (status.ok()) outage_logged_ = false;
  }
  if (!cancelled) {
    const bool graded = status.ok() && call->response.grade().verdict() != v1::VERDICT_UNSPECIFIED;
    call->done(graded ? std::move(*call->response.mutable_grade()) : Unscorable(*call, status));
  }
  std::vector<CallPointer> ready;
  {
    // Once the last call has left started_, the destructor may be through at any moment.
    absl::MutexLock lock(&mutex_);
    started_.erase(call);
    ready = TakeReady();
  }
  StartAttempts(ready);
}

v1::Grade GradeClient::Unscorable(const Call& call, const absl::Status& status) const {
  v1::Grade grade;
  grade.set_request_id(call.request.request_id());
  grade.set_task_id(call.request.task().id());
  grade.set_verdict(v1::VERDICT_UNSCORABLE);
  grade.set_verdict_reason(absl::StrCat(
      "The reward service ", service_name_, " gave no grade in ",
      absl::FormatDuration(absl::Trunc(absl::Now() - call.first_attempt, absl::Milliseconds(1))), ", failed ",
      call.retries.num_failed, " attempts and was full at ", call.retries.num_refused, ": ",
      status.ok() ? "its answer has no verdict" : Describe(status)));
  LogWarning(grade.verdict_reason());
  return grade;
}

}  // namespace warpsmith
