// What needs a device's memory, tried again where that was wanting.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_ROOM_ON_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_ROOM_ON_DEVICE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/referee/task/task_on_device.h"

namespace warpsmith {

// A process that cannot open a GPU, and memory that nobody gets there, are no fault of the machine while another
// process has all of it. For one attempt after the other of whoever has the device's turn:
//
//   RoomOnDevice room(&device, deadline);
//   do made = Make(); while (!made.ok() && room.MayBeThere(made.status()));
class RoomOnDevice {
 public:
  // So long after its first failure. A driver takes a moment to take back what a killed process had, and tells nobody
  // when it has.
  static constexpr absl::Duration kTimeMax = absl::Seconds(5);

  // What it is given outlives it.
  RoomOnDevice(TaskOnDevice* device, absl::Time deadline)
      : turn_(device->turn()),
        is_crowded_([device] { return device->IsCrowded(/*own_bytes=*/0); }),
        end_waiting_([device] { return device->EndWaiting(); }),
        deadline_(deadline) {}
  RoomOnDevice(TensorStore* store, absl::Time deadline)
      : turn_(store->turn()),
        is_crowded_([store] { return store->IsCrowded(/*own_bytes=*/0); }),
        end_waiting_([store] { return store->EndWaiting(); }),
        deadline_(deadline) {}

  // Whether it is worth another attempt after such a failure. Not beside others, who may go on for long: whoever calls
  // tries again alone. Alone the processes that wait there end first, whatever has failed, and each attempt waits for a
  // moment.
  bool MayBeThere(const absl::Status& failure);
  // Since the first failure that was worth another attempt: a wait for others' memory, which is on nobody's clock.
  absl::Duration waited() const;

 private:
  DeviceTurn* const turn_;
  const std::function<bool()> is_crowded_;
  const std::function<bool()> end_waiting_;
  absl::Time deadline_;
  absl::Time failed_first_ = absl::InfiniteFuture();  // others have ended since
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_ROOM_ON_DEVICE_H_
