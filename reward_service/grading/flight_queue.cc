#include "reward_service/grading/flight_queue.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/time/clock.h"

namespace warpsmith {
namespace {

const std::string& TenantOf(const Flight& flight) {
  static const std::string nobody;
  return flight.prepared->tenant == nullptr ? nobody : flight.prepared->tenant->name;
}

}  // namespace

void FlightQueue::Push(std::shared_ptr<Flight> flight) {
  flight->queued_since = absl::Now();
  absl::MutexLock lock(&mutex_);
  const std::string& tenant = TenantOf(*flight);
  std::vector<std::string_view> busy;
  for (const auto& other : flights_) busy.push_back(TenantOf(*other));
  if (std::find(busy.begin(), busy.end(), tenant) == busy.end()) clock_.Enter(tenant, busy);
  flight->queue_number = next_number_++;
  flights_.push_back(std::move(flight));
  OpenGate();
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

WaitingWork FlightQueue::WorkOf(const Flight& flight, absl::Time now, PlaceOf place_of) const {
  return {.task_key = flight.prepared->task_key,
          .waited = now - flight.queued_since,
          .tenant = TenantOf(flight),
          .priority = flight.priority,
          .task_place = place_of(flight.prepared->task_key),
          .came_late = flight.queue_number >= gate_};
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
                                             PlaceOf place_of, absl::Duration left_max) {
  absl::MutexLock lock(&mutex_);
  DropCancelled();
  if (closed_ || flights_.empty()) return nullptr;
  const absl::Time now = absl::Now();
  std::vector<WaitingWork> waiting;
  waiting.reserve(flights_.size());
  for (const auto& flight : flights_) {
    waiting.push_back(WorkOf(*flight, now, place_of));
    waiting.back().task_is_judged = absl::c_linear_search(judged_tasks, flight->prepared->task_key);
  }
  const std::optional<size_t> index = PickNext(waiting, *recent, clock_, options_, left_max);
  if (!index.has_value()) return nullptr;
  *recent = {std::string(waiting[*index].task_key), std::string(waiting[*index].tenant)};
  std::shared_ptr<Flight> flight = std::move(flights_[*index]);
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(*index));
  OpenGate();
  return flight;
}

std::optional<TaskSource> FlightQueue::NextTask(const std::vector<std::string>& judged_tasks,
                                                v1::Device device, PlaceOf place_of) const {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  std::vector<const Flight*> flights;
  std::vector<WaitingWork> waiting;
  for (const auto& flight : flights_) {
    if (flight->prepared->device != device || absl::c_linear_search(judged_tasks, flight->prepared->task_key))
      continue;
    const WaitingWork work = WorkOf(*flight, now, place_of);
    if (work.task_place == TaskPlace::kElsewhere) continue;
    flights.push_back(flight.get());
    waiting.push_back(work);
  }
  if (flights.empty()) return std::nullopt;
  const Flight& next = *flights[PickNext(waiting, {}, clock_, options_).value()];
  return TaskSource{next.prepared->task_key, next.prepared->request.task().reference_source()};
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
  OpenGate();
}

// Once all flights that the gate has let in are gone, it lets in all that wait; whatever comes after that is late.
void FlightQueue::OpenGate() {
  if (!flights_.empty() && flights_.front()->queue_number >= gate_) gate_ = next_number_;
}

}  // namespace warpsmith
