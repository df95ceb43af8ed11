#include "reward_service/grading/grader.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/status.h"
#include "reward_service/grading/llm_stage.h"

namespace warpsmith {
namespace {

constexpr int64_t kIdentityBytes = 512;  // of an entry without its grade
constexpr int64_t kOpinionBytes = 2048;
constexpr int64_t kOpinionsBytesMax = int64_t{16} << 20;

// As others will find it; null where they may not.
std::shared_ptr<const v1::Measurement> ToKeep(const v1::Measurement& measurement) {
  if (measurement.grade().verdict() == v1::VERDICT_UNSCORABLE || measurement.grade().cached()) return nullptr;
  auto kept = std::make_shared<v1::Measurement>(measurement);
  kept->mutable_grade()->set_cached(true);
  return kept;
}

std::shared_ptr<const v1::Measurement> NoCode() {
  auto measurement = std::make_shared<v1::Measurement>();
  measurement->mutable_grade()->set_verdict(v1::VERDICT_NO_CODE);
  measurement->mutable_grade()->set_verdict_reason(
      "no fenced block after the thinking part, or an empty one");
  return measurement;
}

int NumJudgedAtOnce(const std::vector<std::unique_ptr<JudgeStage>>& lanes) {
  int num = 0;
  for (const auto& lane : lanes) num += lane->num_at_once();
  return num;
}

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

// The service's default formula may be another than when it first answered this request.
absl::Status CheckFormula(const PreparedRequest& prepared, const v1::Grade& given) {
  const std::string& formula = prepared.request.formula();
  if (!given.has_reward() || formula.empty() || given.reward().formula() == formula) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("request_id ", Escape(prepared.request.request_id()), " was answered by the formula ",
                   given.reward().formula(), ", and ", formula,
                   " is this service's default now; name the formula in the request, or choose another id"));
}

}  // namespace

Grader::Grader(const GraderOptions& options, const CompileStage* compile_stage,
               std::vector<std::unique_ptr<JudgeStage>> lanes)
    : options_(options),
      compile_stage_(compile_stage),
      lanes_(std::move(lanes)),
      recording_(lanes_, &task_lanes_),
      serving_(options.revival_pause),
      to_compile_(options.policy),
      to_ask_(options.policy),
      backlog_time_(options.num_compile_workers, NumJudgedAtOnce(lanes_)),
      identities_(options.cache_bytes_max / 2),
      measurements_(options.cache_bytes_max / 2),
      opinions_(kOpinionsBytesMax) {
  for (const auto& lane : lanes_) {
    to_judge_.try_emplace(lane->device(), options_.policy);
    serving_.Add(lane->device());
  }
  for (int i = 0; i < options_.num_compile_workers; ++i) threads_.emplace_back([this] { CompileLoop(); });
  for (const auto& lane : lanes_) threads_.emplace_back([this, &lane] { JudgeLoop(lane.get()); });
  const int num_asking = options_.llm_stage != nullptr ? options_.num_llm_requests : 0;
  for (int i = 0; i < num_asking; ++i) threads_.emplace_back([this] { LlmLoop(); });
}

Grader::~Grader() { Drain(absl::ZeroDuration()); }

uint64_t Grader::Submit(std::shared_ptr<const PreparedRequest> prepared, GradeDone done) {
  absl::StatusOr<std::optional<Known>> known;
  absl::StatusOr<uint64_t> ticket = uint64_t{0};
  {
    absl::MutexLock lock(&mutex_);
    known = Find(*prepared);
    if (known.ok() && !known->has_value()) ticket = Admit(prepared, &done);
  }
  if (!known.ok()) {
    done(known.status());
  } else if (!ticket.ok()) {
    done(ticket.status());
  } else if (known->has_value()) {
    Answer answer = AnswerFrom(prepared, **known);
    answer.done = std::move(done);
    Give(std::move(answer));
  }
  return ticket.value_or(0);
}

absl::StatusOr<std::optional<Grader::Known>> Grader::Find(const PreparedRequest& prepared) {
  if (draining_) return absl::UnavailableError("the service is shutting down: ask again");
  const std::string id = prepared.identity_key();
  const Identity* identity = identities_.Find(id);
  if (identity != nullptr && identity->content_sha256 != prepared.content_sha256) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id ", Escape(prepared.request.request_id()), " was used for another request"));
  }
  if (identity != nullptr && identity->grade != nullptr) {
    RETURN_IF_ERROR(CheckFormula(prepared, *identity->grade));
    return Known{.grade = identity->grade};
  }
  Known known;
  if (prepared.source.empty()) {
    known.measurement = NoCode();
  } else if (const auto* measured = measurements_.Find(prepared.measurement_key); measured != nullptr) {
    known.measurement = *measured;
    if (WantsOpinion(prepared, *known.measurement)) {
      const auto* given = opinions_.Find(prepared.opinion_key);
      if (given == nullptr) return std::nullopt;
      known.opinion = *given;
    }
  } else {
    return std::nullopt;
  }
  if (identity == nullptr) identities_.Insert(id, {prepared.content_sha256, nullptr}, kIdentityBytes);
  return known;
}

void Grader::Recall(GradeRecord record) {
  absl::MutexLock lock(&mutex_);
  const auto grade = std::make_shared<const v1::Grade>(std::move(record.grade));
  const int64_t num_bytes = kIdentityBytes + static_cast<int64_t>(grade->SpaceUsedLong());
  identities_.Insert(std::move(record.identity), {std::move(record.content_sha256), grade}, num_bytes);
}

void Grader::Give(Answer answer) const {
  if (answer.is_new && options_.keep && answer.grade.verdict() != v1::VERDICT_UNSCORABLE)
    options_.keep({answer.prepared->identity_key(), answer.prepared->content_sha256, answer.grade});
  if (answer.is_new && options_.observer) options_.observer(answer.prepared, answer.grade);
  answer.done(std::move(answer.grade));
}

absl::Status Grader::CheckRoom(const PreparedRequest& prepared) const {
  if (num_waiting_ >= options_.queue_capacity) {
    return BackPressureError(absl::StrCat("the queue is full with ", num_waiting_, " requests"),
                             backlog_time_.Estimate(num_waiting_, options_.now()));
  }
  if (prepared.tenant == nullptr) return absl::OkStatus();
  const auto found = num_waiting_by_tenant_.find(prepared.tenant->name);
  if (found == num_waiting_by_tenant_.end() || found->second < prepared.tenant->requests_max) {
    return absl::OkStatus();
  }
  return BackPressureError(
      absl::StrCat("tenant ", prepared.tenant->name, " has ", found->second, " requests waiting, its limit"),
      backlog_time_.Estimate(found->second, options_.now()));
}

absl::StatusOr<uint64_t> Grader::Admit(const std::shared_ptr<const PreparedRequest>& prepared,
                                       GradeDone* done) {
  RETURN_IF_ERROR(CheckRoom(*prepared));
  ++num_waiting_;
  if (prepared->tenant != nullptr) ++num_waiting_by_tenant_[prepared->tenant->name];
  const uint64_t ticket = next_ticket_++;
  identities_.Insert(prepared->identity_key(), {prepared->content_sha256, nullptr}, kIdentityBytes);
  keys_[ticket] = KeyOf(*prepared);
  std::shared_ptr<Flight>& flight = flights_[KeyOf(*prepared)];
  const bool is_new = flight == nullptr;
  if (is_new) {
    flight = std::make_shared<Flight>();
    flight->prepared = prepared;
  }
  flight->priority = std::max(flight->priority.load(), prepared->priority());
  flight->waiters.push_back({ticket, prepared, std::move(*done), options_.now()});
  if (!is_new) return ticket;
  if (const auto* measured = measurements_.Find(prepared->measurement_key); measured != nullptr) {
    flight->measurement = **measured;  // only its opinion is missing
    to_ask_.Push(flight);
  } else {
    Send(flight, FirstRoute(*prepared));
  }
  return ticket;
}

Grader::Answer Grader::AnswerFrom(const std::shared_ptr<const PreparedRequest>& prepared,
                                  const Known& known) {
  if (known.grade != nullptr) return {prepared, *known.grade, /*is_new=*/false};
  return MakeAnswer(prepared, *known.measurement, known.opinion.get());
}

Grader::Answer Grader::MakeAnswer(const std::shared_ptr<const PreparedRequest>& prepared,
                                  const v1::Measurement& measurement, const LlmOpinion* opinion) {
  v1::Grade grade = options_.merge(*prepared, measurement, opinion);
  const v1::Environment of_lane = grade.environment();
  *grade.mutable_environment() = options_.environment;
  grade.mutable_environment()->MergeFrom(of_lane);
  Identity identity{prepared->content_sha256, nullptr};
  int64_t num_bytes = kIdentityBytes;
  if (grade.verdict() != v1::VERDICT_UNSCORABLE) {
    identity.grade = std::make_shared<const v1::Grade>(grade);
    num_bytes += static_cast<int64_t>(grade.SpaceUsedLong());
  }
  const std::string id = prepared->identity_key();
  std::shared_ptr<const v1::Grade> earlier;
  {
    absl::MutexLock lock(&mutex_);
    const Identity* known = identities_.Find(id);
    if (known != nullptr && known->content_sha256 == identity.content_sha256) earlier = known->grade;
    if (earlier == nullptr) identities_.Insert(id, std::move(identity), num_bytes);
  }
  if (earlier != nullptr) return {prepared, *earlier, /*is_new=*/false};
  return {prepared, std::move(grade)};
}

void Grader::Send(const std::shared_ptr<Flight>& flight, Route next) {
  switch (next) {
    case Route::kCompile:
      return to_compile_.Push(flight);
    case Route::kJudge:
      return JudgeQueueOf(flight->prepared->device).Push(flight);
    case Route::kFinish:
      if (!WantsOpinion(*flight->prepared, flight->measurement)) return Finish(flight);
      return to_ask_.Push(flight);
    case Route::kDrop:
      return;
  }
}

FlightQueue& Grader::JudgeQueueOf(v1::Device device) {
  const auto found = to_judge_.find(device);
  WS_CHECK(found != to_judge_.end()) << "the door checks devices: " << v1::Device_Name(device);
  return found->second;
}

void Grader::CompileLoop() {
  NameThread("compile");
  RecentWork recent;
  while (const std::shared_ptr<Flight> flight = to_compile_.Take(&recent)) Send(flight, Compile(flight));
}

Route Grader::Compile(const std::shared_ptr<Flight>& flight) {
  const absl::Time begin = options_.now();
  Route next = WantsRecording(*flight) ? recording_.Record(flight.get(), options_.now()) : Route::kCompile;
  if (next == Route::kCompile) next = compile_stage_->Run(flight.get());
  const absl::Time end = options_.now();
  to_compile_.Charge(*flight, end - begin);
  absl::MutexLock lock(&mutex_);
  backlog_time_.CountCompiling(end - begin, end);
  return next;
}

bool Grader::WantsOpinion(const PreparedRequest& prepared, const v1::Measurement& measurement) const {
  return options_.llm_stage != nullptr && LlmStage::Wants(prepared, measurement);
}

void Grader::LlmLoop() {
  NameThread("llm");
  RecentWork recent;
  while (const std::shared_ptr<Flight> flight = to_ask_.Take(&recent)) {
    const absl::Time begin = absl::Now();
    options_.llm_stage->Run(flight.get());
    to_ask_.Charge(*flight, absl::Now() - begin);
    Finish(flight);
  }
}

void Grader::Keep(const Flight& flight, std::shared_ptr<const v1::Measurement> measurement) {
  if (measurement != nullptr) {
    const int64_t num_bytes = kIdentityBytes + static_cast<int64_t>(measurement->SpaceUsedLong());
    measurements_.Insert(flight.prepared->measurement_key, std::move(measurement), num_bytes);
  }
  if (flight.opinion != nullptr && flight.opinion->failure.empty()) {
    opinions_.Insert(flight.prepared->opinion_key, flight.opinion, kOpinionBytes);
  }
}

void Grader::Finish(const std::shared_ptr<Flight>& flight) {
  const absl::Time now = options_.now();
  std::shared_ptr<const v1::Measurement> kept = ToKeep(flight->measurement);
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    const std::string& key = KeyOf(*flight->prepared);
    Keep(*flight, std::move(kept));
    if (const auto found = flights_.find(key); found != flights_.end() && found->second == flight)
      flights_.erase(found);
    waiters.swap(flight->waiters);
    backlog_time_.CountAnswered(static_cast<int>(waiters.size()), now);
    for (const Waiter& waiter : waiters) StopWaiting(waiter);
  }
  for (Waiter& waiter : waiters) {
    flight->measurement.mutable_grade()->mutable_cost()->set_total_seconds(
        absl::ToDoubleSeconds(now - waiter.arrived));
    Answer answer = MakeAnswer(waiter.prepared, flight->measurement, flight->opinion.get());
    answer.done = std::move(waiter.done);
    Give(std::move(answer));
  }
}

void Grader::StopWaiting(const Waiter& waiter) {
  keys_.erase(waiter.ticket);
  --num_waiting_;
  if (waiter.prepared->tenant == nullptr) return;
  const auto found = num_waiting_by_tenant_.find(waiter.prepared->tenant->name);
  if (--found->second == 0) num_waiting_by_tenant_.erase(found);
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
    StopWaiting(*waiter);
    flight->waiters.erase(waiter);
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
    num_waiting_by_tenant_.clear();
  }
  for (GradeDone& done : abandoned) done(absl::UnavailableError("the service is shutting down: ask again"));
  serving_.Close();
  to_compile_.Close();
  for (auto& [device, queue] : to_judge_) queue.Close();
  to_ask_.Close();
  if (options_.llm_stage != nullptr) options_.llm_stage->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Backlog Grader::backlog() const {
  int num_to_judge = 0;
  for (const auto& [device, queue] : to_judge_) num_to_judge += queue.size();
  absl::MutexLock lock(&mutex_);
  return {num_waiting_, to_compile_.size(), num_to_judge, to_ask_.size(), serving_.num_lost()};
}

}  // namespace warpsmith
