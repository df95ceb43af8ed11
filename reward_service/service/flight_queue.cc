#include "reward_service/service/flight_queue.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"

namespace warpsmith {

void FlightQueue::Push(std::shared_ptr<Flight> flight) {
  flight->queued_since = absl::Now();
  absl::MutexLock lock(&mutex_);
  flights_.push_back(std::move(flight));
}

std::shared_ptr<Flight> FlightQueue::Take(RecentWork* recent) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(this, &FlightQueue::HasWorkOrClosed));
    if (closed_) return nullptr;
    DropCancelled();
    if (flights_.empty()) continue;
    const absl::Time now = absl::Now();
    std::vector<WaitingWork> waiting;
    waiting.reserve(flights_.size());
    for (const auto& flight : flights_)
      waiting.push_back({flight->prepared->task_key, now - flight->queued_since});
    const size_t index = PickNext(waiting, *recent, options_);
    std::shared_ptr<Flight> flight = std::move(flights_[index]);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(index));
    *recent = AfterWork(*recent, flight->prepared->task_key);
    return flight;
  }
}

std::optional<TaskSource> FlightQueue::NextTask(const std::string& task_key) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& flight : flights_) {
    if (flight->prepared->task_key == task_key) continue;
    return TaskSource{flight->prepared->task_key, flight->prepared->request.task().reference_source()};
  }
  return std::nullopt;
}

void FlightQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void FlightQueue::DropCancelled() {
  const auto unwanted = [](const std::shared_ptr<Flight>& flight) { return flight->cancelled.load(); };
  flights_.erase(std::remove_if(flights_.begin(), flights_.end(), unwanted), flights_.end());
}

}  // namespace warpsmith
