// Which lane's referee is asked what a Python program wants compiled.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "reward_service/grading/stages.h"

namespace warpsmith {

// Thread-safe. The lanes outlive it.
class RecordingLanes {
 public:
  explicit RecordingLanes(const std::vector<std::unique_ptr<JudgeStage>>& lanes) : lanes_(lanes) {}

  // As JudgeStage::Record(), on the lanes of the program's device in turn; a lost one is asked only
  // where all are. Where the referee of one fails another is asked, once, and then the flight is
  // finished.
  Route Record(Flight* flight);

 private:
  std::vector<const JudgeStage*> LanesFor(v1::Device device) const;

  const std::vector<std::unique_ptr<JudgeStage>>& lanes_;
  std::atomic<size_t> next_{0};
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_RECORDING_LANES_H_
