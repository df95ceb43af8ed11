#include "reward_service/service/grader.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/rpc/status.h"
#include "reward_service/service/merge.h"

namespace warpsmith {
namespace {

constexpr int64_t kIdentityBytes = 512;  // of an entry without its grade
// What a client is told when the queue is full: about the time of a few candidates.
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

bool IsKept(const Measurement& measurement) { return measurement.grade.verdict() != v1::VERDICT_UNSCORABLE; }

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace

Grader::Grader(const GraderOptions& options, const CompileStage* compile_stage,
               std::vector<std::unique_ptr<JudgeStage>> lanes)
    : options_(options),
      compile_stage_(compile_stage),
      lanes_(std::move(lanes)),
      to_compile_(options.policy),
      to_judge_(options.policy),
      identities_(options.cache_bytes_max / 2),
      measurements_(options.cache_bytes_max / 2) {
  for (int i = 0; i < options_.num_compile_workers; ++i) threads_.emplace_back([this] { CompileLoop(); });
  for (const auto& lane : lanes_) threads_.emplace_back([this, &lane] { JudgeLoop(lane.get()); });
}

Grader::~Grader() { Drain(absl::ZeroDuration()); }

uint64_t Grader::Submit(std::shared_ptr<const PreparedRequest> prepared, GradeDone done) {
  absl::StatusOr<std::shared_ptr<const v1::Grade>> known;
  absl::StatusOr<uint64_t> ticket = uint64_t{0};
  {
    absl::MutexLock lock(&mutex_);
    known = Known(*prepared);
    if (known.ok() && *known == nullptr) ticket = Admit(prepared, &done);
  }
  if (!known.ok()) {
    done(known.status());
  } else if (!ticket.ok()) {
    done(ticket.status());
  } else if (*known != nullptr) {
    done(**known);
  }
  return ticket.value_or(0);
}

absl::StatusOr<std::shared_ptr<const v1::Grade>> Grader::Known(const PreparedRequest& prepared) {
  if (draining_) return absl::UnavailableError("the service is shutting down: ask again");
  const std::string& id = prepared.request.request_id();
  if (const Identity* known = identities_.Find(id); known != nullptr) {
    if (known->content_sha256 != prepared.content_sha256) {
      return absl::InvalidArgumentError(
          absl::StrCat("request_id ", Escape(id), " was used for another request"));
    }
    if (known->grade != nullptr) return known->grade;
  }
  Measurement measurement;
  if (prepared.source.empty()) {
    measurement.grade.set_verdict(v1::VERDICT_NO_CODE);
    measurement.grade.set_verdict_reason("no fenced block after the thinking part, or an empty one");
  } else if (const auto* found = measurements_.Find(prepared.measurement_key); found != nullptr) {
    measurement = **found;
    measurement.grade.set_cached(true);
  } else {
    return nullptr;
  }
  return std::make_shared<const v1::Grade>(Answer(prepared, measurement));
}

absl::StatusOr<uint64_t> Grader::Admit(const std::shared_ptr<const PreparedRequest>& prepared,
                                       GradeDone* done) {
  if (num_waiting_ >= options_.queue_capacity) {
    return BackPressureError(absl::StrCat("the queue is full with ", num_waiting_, " requests"), kRetryDelay);
  }
  ++num_waiting_;
  const uint64_t ticket = next_ticket_++;
  identities_.Insert(prepared->request.request_id(), {prepared->content_sha256, nullptr}, kIdentityBytes);
  keys_[ticket] = prepared->measurement_key;
  std::shared_ptr<Flight>& flight = flights_[prepared->measurement_key];
  const bool is_new = flight == nullptr;
  if (is_new) {
    flight = std::make_shared<Flight>();
    flight->prepared = prepared;
  }
  flight->waiters.push_back({ticket, prepared, std::move(*done), absl::Now()});
  if (is_new) Send(flight, FirstRoute(*prepared));
  return ticket;
}

v1::Grade Grader::Answer(const PreparedRequest& prepared, const Measurement& measurement) {
  const std::string& id = prepared.request.request_id();
  if (const Identity* known = identities_.Find(id); known != nullptr && known->grade != nullptr)
    return *known->grade;
  v1::Grade grade = MergeGrade(prepared, measurement);
  *grade.mutable_environment() = options_.environment;
  if (grade.verdict() == v1::VERDICT_UNSCORABLE) {
    identities_.Insert(id, {prepared.content_sha256, nullptr}, kIdentityBytes);
  } else {
    identities_.Insert(id, {prepared.content_sha256, std::make_shared<const v1::Grade>(grade)},
                       kIdentityBytes + static_cast<int64_t>(grade.SpaceUsedLong()));
  }
  return grade;
}

void Grader::Send(const std::shared_ptr<Flight>& flight, Route next) {
  switch (next) {
    case Route::kCompile:
      return to_compile_.Push(flight);
    case Route::kJudge:
      return to_judge_.Push(flight);
    case Route::kFinish:
      return Finish(flight);
    case Route::kDrop:
      return;
  }
}

void Grader::CompileLoop() {
  NameThread("compile");
  RecentWork recent;
  while (const std::shared_ptr<Flight> flight = to_compile_.Take(&recent)) {
    Send(flight, compile_stage_->Run(flight.get()));
  }
}

void Grader::JudgeLoop(JudgeStage* lane) {
  NameThread("lane");
  RecentWork recent;
  while (const std::shared_ptr<Flight> flight = to_judge_.Take(&recent)) {
    std::optional<TaskSource> next = to_judge_.NextTask(recent.task_key);
    if (!next.has_value()) next = to_compile_.NextTask(recent.task_key);
    if (next.has_value()) lane->Prefetch(*next);
    Send(flight, lane->Run(flight.get()));
  }
}

void Grader::Finish(const std::shared_ptr<Flight>& flight) {
  const absl::Time now = absl::Now();
  std::vector<std::pair<GradeDone, v1::Grade>> answers;
  {
    absl::MutexLock lock(&mutex_);
    const std::string& key = flight->prepared->measurement_key;
    if (IsKept(flight->measurement)) {
      const auto kept = std::make_shared<const Measurement>(flight->measurement);
      measurements_.Insert(key, kept, kIdentityBytes + static_cast<int64_t>(kept->grade.SpaceUsedLong()));
    }
    if (const auto found = flights_.find(key); found != flights_.end() && found->second == flight)
      flights_.erase(found);
    for (Waiter& waiter : flight->waiters) {
      flight->measurement.grade.mutable_cost()->set_total_seconds(
          absl::ToDoubleSeconds(now - waiter.arrived));
      answers.emplace_back(std::move(waiter.done), Answer(*waiter.prepared, flight->measurement));
      keys_.erase(waiter.ticket);
      --num_waiting_;
    }
    flight->waiters.clear();
  }
  for (auto& [done, grade] : answers) done(std::move(grade));
}

void Grader::Cancel(uint64_t ticket) {
  GradeDone done;
  {
    absl::MutexLock lock(&mutex_);
    const auto key = keys_.find(ticket);
    if (key == keys_.end()) return;
    const auto found = flights_.find(key->second);
    const std::shared_ptr<Flight> flight = found->second;
    const auto waiter = std::find_if(flight->waiters.begin(), flight->waiters.end(),
                                     [&](const Waiter& candidate) { return candidate.ticket == ticket; });
    done = std::move(waiter->done);
    flight->waiters.erase(waiter);
    keys_.erase(key);
    --num_waiting_;
    if (flight->waiters.empty()) {
      flight->cancelled = true;
      flights_.erase(found);  // a new request of this key begins anew
    }
  }
  done(absl::CancelledError("the caller is gone"));
}

void Grader::Drain(absl::Duration grace) {
  std::vector<GradeDone> abandoned;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    mutex_.AwaitWithTimeout(absl::Condition(this, &Grader::Idle), grace);
    for (auto& [key, flight] : flights_) {
      flight->cancelled = true;
      for (Waiter& waiter : flight->waiters) abandoned.push_back(std::move(waiter.done));
      flight->waiters.clear();
    }
    flights_.clear();
    keys_.clear();
    num_waiting_ = 0;
  }
  for (GradeDone& done : abandoned) done(absl::UnavailableError("the service is shutting down: ask again"));
  to_compile_.Close();
  to_judge_.Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

int Grader::num_waiting() const {
  absl::MutexLock lock(&mutex_);
  return num_waiting_;
}

}  // namespace warpsmith
