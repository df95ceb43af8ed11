#include "reward_service/grading/recording_lanes.h"

#include <algorithm>

#include "core/base/check.h"

namespace warpsmith {
namespace {

constexpr size_t kLanesAskedMax = 2;

}  // namespace

Route RecordingLanes::Record(Flight* flight, absl::Time now) {
  const PreparedRequest& prepared = *flight->prepared;
  const std::vector<const JudgeStage*> lanes = LanesFor(prepared.device);
  const JudgeStage* const of_task = task_lanes_->Of(prepared.task_key, prepared.device, now);
  const auto ready = std::find(lanes.begin(), lanes.end(), of_task);
  const size_t first = ready == lanes.end() ? next_++ : static_cast<size_t>(ready - lanes.begin());
  for (size_t i = 0;; ++i) {
    const bool is_last = i + 1 == std::min(kLanesAskedMax, lanes.size());
    const JudgeStage* const lane = lanes[(first + i) % lanes.size()];
    // It claims a task that is nobody's, and keeps none: a lane that judges nothing loses its tasks.
    if (of_task == nullptr) task_lanes_->Use(prepared.task_key, lane, now);
    const Route next = lane->Record(flight, {.others_serve = !is_last});
    if (is_last || next != Route::kCompile || !WantsRecording(*flight)) return next;
  }
}

std::vector<const JudgeStage*> RecordingLanes::LanesFor(v1::Device device) const {
  std::vector<const JudgeStage*> all, serving;
  for (const auto& lane : lanes_) {
    if (lane->device() != device) continue;
    all.push_back(lane.get());
    if (!lane->is_lost()) serving.push_back(lane.get());
  }
  WS_CHECK(!all.empty()) << "the door checks devices: " << v1::Device_Name(device);
  return serving.empty() ? all : serving;
}

}  // namespace warpsmith
