// Which lane's referee is asked what a Python program wants compiled.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "reward_service/grading/stages.h"
#include "reward_service/grading/task_lanes.h"

namespace warpsmith {

// Thread-safe. What it is given outlives it.
class RecordingLanes {
 public:
  RecordingLanes(const std::vector<std::unique_ptr<JudgeStage>>& lanes, TaskLanes* task_lanes)
      : lanes_(lanes), task_lanes_(task_lanes) {}

  // As JudgeStage::Record(), on the lane of the program's task, else on those of its device in turn; a lost one is
  // asked only where all are. Where the referee of one fails another is asked, once, and then the flight is finished.
  Route Record(Flight* flight, absl::Time now);

 private:
  std::vector<const JudgeStage*> LanesFor(v1::Device device) const;

  const std::vector<std::unique_ptr<JudgeStage>>& lanes_;
  TaskLanes* const task_lanes_;
  std::atomic<size_t> next_{0};
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_
