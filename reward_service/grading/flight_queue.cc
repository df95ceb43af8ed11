#include "reward_service/grading/flight_queue.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

const std::string& TenantOf(const Flight& flight) {
  static const std::string nobody;
  return flight.prepared->tenant == nullptr ? nobody : flight.prepared->tenant->name;
}

bool Contains(const std::vector<std::string>& task_keys, const std::string& task_key) {
  return std::find(task_keys.begin(), task_keys.end(), task_key) != task_keys.end();
}

}  // namespace

void FlightQueue::Push(std::shared_ptr<Flight> flight) {
  flight->queued_since = absl::Now();
  absl::MutexLock lock(&mutex_);
  const std::string& tenant = TenantOf(*flight);
  std::vector<std::string_view> busy;
  for (const auto& other : flights_) busy.push_back(TenantOf(*other));
  if (std::find(busy.begin(), busy.end(), tenant) == busy.end()) clock_.Enter(tenant, busy);
  flights_.push_back(std::move(flight));
  NoteFirst();
}

void FlightQueue::Charge(const Flight& flight, absl::Duration work) {
  absl::MutexLock lock(&mutex_);
  clock_.Charge(TenantOf(flight), flight.prepared->tenant == nullptr ? 1.0 : flight.prepared->tenant->share,
                work);
}

int FlightQueue::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(flights_.size());
}

std::vector<WaitingWork> FlightQueue::Waiting(absl::Time now) const {
  std::vector<WaitingWork> waiting;
  waiting.reserve(flights_.size());
  for (const auto& flight : flights_) {
    waiting.push_back({.task_key = flight->prepared->task_key,
                       .waited = now - flight->queued_since,
                       .tenant = TenantOf(*flight),
                       .priority = flight->priority,
                       .came_late = flight->queued_since > first_since_});
  }
  return waiting;
}

std::shared_ptr<Flight> FlightQueue::Take(RecentWork* recent) {
  while (AwaitWork()) {
    if (std::shared_ptr<Flight> flight = TakeNow(recent); flight != nullptr) return flight;
  }
  return nullptr;
}

bool FlightQueue::AwaitWork(const std::atomic<bool>* else_wanted) const {
  absl::MutexLock lock(&mutex_);
  const auto is_wanted = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return HasWorkOrClosed() || (else_wanted != nullptr && *else_wanted);
  };
  mutex_.Await(absl::Condition(&is_wanted));
  return !closed_;
}

// Conditions are looked at when the lock is given up.
void FlightQueue::LookAgain() const { absl::MutexLock lock(&mutex_); }

std::shared_ptr<Flight> FlightQueue::TakeNow(RecentWork* recent, const std::vector<std::string>& judged_tasks,
                                             PlaceOf place_of) {
  absl::MutexLock lock(&mutex_);
  DropCancelled();
  if (closed_ || flights_.empty()) return nullptr;
  std::vector<WaitingWork> waiting = Waiting(absl::Now());
  for (size_t i = 0; i < waiting.size(); ++i) {
    const std::string& task_key = flights_[i]->prepared->task_key;
    waiting[i].task_is_judged = Contains(judged_tasks, task_key);
    waiting[i].task_place = place_of(task_key);
  }
  const std::optional<size_t> index = PickNext(waiting, *recent, clock_, options_, !judged_tasks.empty());
  if (!index.has_value()) return nullptr;
  *recent = {std::string(waiting[*index].task_key), std::string(waiting[*index].tenant)};
  std::shared_ptr<Flight> flight = std::move(flights_[*index]);
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(*index));
  NoteFirst();
  return flight;
}

std::optional<TaskSource> FlightQueue::NextTask(const std::vector<std::string>& judged_tasks,
                                                v1::Device device, PlaceOf place_of) const {
  absl::MutexLock lock(&mutex_);
  const Flight* next = nullptr;
  for (const auto& flight : flights_) {
    const std::string& task_key = flight->prepared->task_key;
    if (flight->prepared->device != device || Contains(judged_tasks, task_key)) continue;
    const TaskPlace place = place_of(task_key);
    if (place == TaskPlace::kElsewhere || (place == TaskPlace::kNowhere && next != nullptr)) continue;
    next = flight.get();
    if (place == TaskPlace::kHere) break;
  }
  if (next == nullptr) return std::nullopt;
  return TaskSource{next->prepared->task_key, next->prepared->request.task().reference_source()};
}

bool FlightQueue::HasTask(const std::string& task_key, v1::Device device) const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(flights_.begin(), flights_.end(), [&](const auto& flight) {
    return flight->prepared->task_key == task_key && flight->prepared->device == device;
  });
}

void FlightQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void FlightQueue::DropCancelled() {
  const auto unwanted = [](const std::shared_ptr<Flight>& flight) { return flight->cancelled.load(); };
  flights_.erase(std::remove_if(flights_.begin(), flights_.end(), unwanted), flights_.end());
  NoteFirst();
}

void FlightQueue::NoteFirst() {
  if (flights_.empty() || first_.lock() == flights_.front()) return;
  first_ = flights_.front();
  first_since_ = absl::Now();
}

}  // namespace warpsmith
