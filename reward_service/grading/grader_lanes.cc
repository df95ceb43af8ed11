// The grader's loops of its lanes: who is judged next, and by whom.
#include <pthread.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reward_service/grading/grader.h"
#include "reward_service/grading/lane_slots.h"

namespace warpsmith {
namespace {

// A lane that leaves to others what waits looks again after this time, for a request of its own may have come.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

}  // namespace

void Grader::JudgeLoop(JudgeStage* lane) {
  pthread_setname_np(pthread_self(), "lane");
  RecentWork recent;
  std::atomic<bool> rests =
      false;  // set by whoever loses the lane, who may be the last that it judges for long
  LaneSlots slots(lane);
  while (JudgeQueueOf(lane->device()).AwaitWork(&rests)) {
    slots.AwaitFree();
    rests = false;
    if (!lane->is_lost()) {
      JudgeNext(lane, &slots, &recent, &rests);
      continue;
    }
    slots.AwaitAllFree();
    if (!serving_.Rest(lane->device(), [&] { return lane->Revive(); })) return;
    // The last lane of a device does not rest.
    if (lane->is_lost()) JudgeNext(lane, &slots, &recent, &rests);
  }
}

void Grader::JudgeNext(JudgeStage* lane, LaneSlots* slots, RecentWork* recent, std::atomic<bool>* rests) {
  // What waits for the lane's device may meanwhile be taken by another lane, and so may the end of the service come, or
  // of the lane.
  absl::StatusOr<std::shared_ptr<HeldDevice>> held = slots->TakeDevice();
  if (!held.ok()) return;
  const v1::Device device = lane->device();
  if (lane->is_lost() && serving_.OthersServe(device)) {
    *rests = true;
    return;
  }
  FlightQueue& queue = JudgeQueueOf(device);
  const absl::Time now = options_.now();
  const auto place_of = [&](const std::string& task_key) { return task_lanes_.PlaceOf(task_key, lane, now); };
  std::vector<std::string> judged_tasks = slots->busy_tasks();
  const absl::Duration left_max = task_lanes_.LeftMax(*lane, !judged_tasks.empty(), now);
  std::shared_ptr<Flight> flight;
  std::optional<TaskSource> next;
  {
    // One lane at a time, so that no two begin the same task.
    absl::MutexLock lock(&choice_);
    flight = queue.TakeNow(recent, judged_tasks, place_of, left_max);
    if (flight != nullptr) {
      task_lanes_.BeginJudgement(recent->task_key, lane, now);
      judged_tasks.push_back(recent->task_key);
      next = queue.NextTask(judged_tasks, device, place_of);
      if (!next.has_value()) next = to_compile_.NextTask(judged_tasks, device, place_of);
      if (next.has_value()) task_lanes_.Use(next->key, lane, now);
    }
  }
  if (flight == nullptr) {
    held->reset();
    if (queue.size() > 0) slots->AwaitOneMoreFree(kLookAgain);  // it is left to other lanes
    return;
  }
  if (next.has_value()) lane->Prefetch(*next);
  slots->Run(flight->prepared->task_key,
             [this, lane, rests, &queue, flight, held = *std::move(held)]() mutable {
               const Route route = Judge(lane, flight);
               held.reset();
               Send(flight, route);
               if (!lane->is_lost() || !serving_.OthersServe(lane->device())) return;
               *rests = true;
               queue.LookAgain();
             });
}

Route Grader::Judge(JudgeStage* lane, const std::shared_ptr<Flight>& flight) {
  const absl::Time begin = options_.now();
  const v1::Device device = lane->device();
  const std::string& task_key = flight->prepared->task_key;
  FlightQueue& queue = JudgeQueueOf(device);
  const bool another_follows = queue.HasTask(task_key, device) || to_compile_.HasTask(task_key, device);
  const Route next = lane->Run(
      flight.get(), {.another_follows = another_follows, .others_serve = serving_.OthersServe(device)});
  const absl::Time end = options_.now();
  queue.Charge(*flight, end - begin);
  task_lanes_.EndJudgement(task_key, lane, next == Route::kFinish, end);
  absl::MutexLock lock(&mutex_);
  backlog_time_.CountJudging(end - begin, end);
  return next;
}

}  // namespace warpsmith
