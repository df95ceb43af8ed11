// Flights that wait for a stage, taken by policy.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_QUEUE_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_QUEUE_H_

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/grading/flight.h"
#include "reward_service/grading/waiting/lane_policy.h"

namespace warpsmith {

// Thread-safe. Its size is bounded by the grader's admission.
class FlightQueue {
 public:
  // Of a task's key: where its candidates are judged. Called with the queue locked.
  using PlaceOf = absl::FunctionRef<TaskPlace(const std::string& task_key)>;
  static TaskPlace Nowhere(const std::string&) { return TaskPlace::kNowhere; }

  explicit FlightQueue(LanePolicyOptions options) : options_(options) {}

  void Push(std::shared_ptr<Flight> flight) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts `work`, done on `flight`, against its tenant.
  void Charge(const Flight& flight, absl::Duration work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Flights that wait.
  int size() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for a flight that somebody wants and takes the one that the policy picks; `recent` is the taker's
  // own memory and is brought up to date. Null once the queue is closed, whatever is left in it.
  std::shared_ptr<Flight> Take(RecentWork* recent) ABSL_LOCKS_EXCLUDED(mutex_);
  // The two halves of Take(), for who needs something else before it takes a flight: false once the queue is closed;
  // null where others have taken what was there, or it is left to them. Work need not be there where `else_wanted` is
  // true: whoever makes it so calls LookAgain().
  bool AwaitWork(const std::atomic<bool>* else_wanted = nullptr) const ABSL_LOCKS_EXCLUDED(mutex_);
  void LookAgain() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `judged_tasks`: those that the taker has in its hands, which it leaves for later where there are others; before
  // these it leaves those that are elsewhere, on another lane. See PickNext(), also for `left_max`.
  std::shared_ptr<Flight> TakeNow(RecentWork* recent, const std::vector<std::string>& judged_tasks = {},
                                  PlaceOf place_of = Nowhere, absl::Duration left_max = absl::ZeroDuration())
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the waiting flights for `device` whose task is neither one of `judged_tasks` nor elsewhere, the reference of the
  // one that the policy picks.
  std::optional<TaskSource> NextTask(const std::vector<std::string>& judged_tasks, v1::Device device,
                                     PlaceOf place_of = Nowhere) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a flight of this task for `device` waits.
  bool HasTask(const std::string& task_key, v1::Device device) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool HasWorkOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !flights_.empty(); }
  WaitingWork WorkOf(const Flight& flight, absl::Time now, PlaceOf place_of) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void DropCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenGate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LanePolicyOptions options_;
  mutable absl::Mutex mutex_;
  std::deque<std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;  // of flights, in the order in which they come
  uint64_t gate_ ABSL_GUARDED_BY(mutex_) = 0;         // flights of this number and later have come late
  TenantClock clock_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_FLIGHT_QUEUE_H_
