// Waits for events of a GPU, with a deadline, which CUDA's own waits lack.
#ifndef WARPSMITH_CORE_MODEL_EVENT_ARRIVAL_CUDA_H_
#define WARPSMITH_CORE_MODEL_EVENT_ARRIVAL_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/handles_cuda.h"

namespace warpsmith {

// A second stream follows the events of the first and calls the host from there, so that the steps themselves wait
// for no host function. One thread at a time.
class EventArrival {
 public:
  static absl::StatusOr<EventArrival> Create();
  EventArrival(EventArrival&&) = default;
  EventArrival& operator=(EventArrival&&) = default;

  // Has `event`, which was recorded last, counted once the device has come to it.
  absl::Status Follow(cudaEvent_t event);

  // Waits until as many events as `count` have been counted since the beginning. `event` is the last of them: what it
  // says of a lost device ends the wait. DEADLINE_EXCEEDED; INTERNAL with CUDA's message.
  absl::Status Await(int64_t count, cudaEvent_t event, absl::Time deadline);

 private:
  struct Counter;

  EventArrival() = default;

  CudaStream stream_;
  // Also of the calls that the device still has to make, so that one that comes late finds it.
  std::shared_ptr<Counter> counter_;
};

// Longest wait for work of the default stream that takes milliseconds: clearing memory, a pass over weights.
inline constexpr absl::Duration kShortWorkTimeout = absl::Seconds(60);

// Waits until all that is on `stream` of the current device, null: the default one, is done. The errors of
// EventArrival::Await: what the work uses may not be given back then.
absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline);

// Waits until all that is on GPU `device` is done, in a thread that is given up at the deadline. DEADLINE_EXCEEDED,
// naming `what` was waited for; INTERNAL with CUDA's message.
absl::Status AwaitDevice(int device, const char* what, absl::Time deadline);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_EVENT_ARRIVAL_CUDA_H_
