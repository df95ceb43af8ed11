// Sends memory of one process's GPU to the GPUs of others, once, with one deadline for all of it: for weights. What the
// ranks of a run sum is Communicator's.
#ifndef WARPSMITH_CORE_DISTRIBUTED_NCCL_BROADCAST_CUDA_H_
#define WARPSMITH_CORE_DISTRIBUTED_NCCL_BROADCAST_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/distributed/broadcast_place.h"

namespace warpsmith {

// Longest wait for one piece once all members have met. A member that hangs keeps kernels of all the others' GPUs
// waiting, and behind those whatever else waits for a whole GPU, as a step's first launch does: so this is less than
// what a step may take beyond its deadline.
inline constexpr absl::Duration kBroadcastStallMax = absl::Seconds(20);

// BroadcastPlace::id of a new group. The process that draws it is the one where the others meet.
absl::StatusOr<std::string> DrawBroadcastId();

// One member. Every member calls Bring for the same numbers of bytes in the same order. NCCL's communicator is
// non-blocking: its state is asked for until the deadline, at which it is aborted, so that no member waits for one that
// has died. After an error nothing more may be called but the destructor. One thread at a time.
class NcclBroadcast {
 public:
  // Meets the other members, with GPU `device`, which becomes the current one. `is_given_up`, which may be empty, is
  // asked while this waits, and true ends it. DEADLINE_EXCEEDED: not all have come, or one that had come stood still
  // for kBroadcastStallMax; UNAVAILABLE: one has gone; ABORTED: it was given up; FAILED_PRECONDITION: main has not
  // called LeaveMulticastOff (nccl_environment.h); INTERNAL with NCCL's or CUDA's message.
  static absl::StatusOr<std::unique_ptr<NcclBroadcast>> Join(const BroadcastPlace& place, int device,
                                                             absl::Time deadline,
                                                             std::function<bool()> is_given_up = {});
  // Waits for NCCL to give its memory back, at most 5 s.
  ~NcclBroadcast();
  NcclBroadcast(const NcclBroadcast&) = delete;
  NcclBroadcast& operator=(const NcclBroadcast&) = delete;

  // Of this member's GPU. What is put on it comes after what Bring has put there.
  cudaStream_t stream() const;

  // Puts the transfer of the `bytes` at `data`, memory of this member's GPU, on the stream, from rank 0 to all others.
  // Waits where too much lies there already. The errors of Join.
  absl::Status Bring(void* data, int64_t bytes);

  // Waits until all that was put on the stream is done, by every member: then no other member uses NCCL's memory
  // here any more. The errors of Join.
  absl::Status Await();

  // Returns `status`. Where it is an error, of what the caller put on the stream say, it ends all that is under way as
  // an error of Bring does, so that may_still_write() is right.
  absl::Status EndIfFailed(absl::Status status);

  // Whether the device may still write to what Bring was given, although an error was returned: give nothing back then.
  bool may_still_write() const;

 private:
  struct State;
  explicit NcclBroadcast(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_NCCL_BROADCAST_CUDA_H_
