// The sending side of a broadcast: weights in a GPU's memory that many receivers get at once.
#ifndef WARPSMITH_CORE_MODEL_BROADCAST_WEIGHTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_BROADCAST_WEIGHTS_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/model/offered_memory.h"

namespace warpsmith {

// Tells one receiver of the offer and returns what it says, at the latest soon after `deadline`: a call of
// PrepareWeights. Any thread.
using PrepareReceiver = std::function<absl::Status(const OfferedBroadcast& offer, absl::Time deadline)>;

struct BroadcastOutcome {
  // Whether all was sent. The receivers that say so have it all the same.
  absl::Status sent;
  // What each receiver has answered, in their order.
  std::vector<absl::Status> receivers;
  // Whether the device may still read the memory, although `sent` is an error: do not write or free it then.
  bool may_still_read = false;
};

// Sends the weights at `memory` on GPU `device`, in bfloat16 or float16, the buffers of the layout one behind the
// other, after the work of the default stream, to all `receivers`, of which there is at least one: in a new group,
// where they get the ranks from 1 on in their order and this process is rank 0. Tells them on a thread each, and sends
// meanwhile. The first receiver that refuses, and the deadline, end it for all, and they keep what they had: publish
// again, without the one that was lost. Logs bytes, seconds and GB/s.
BroadcastOutcome BroadcastWeights(const ModelConfig& config, std::byte* memory, int device, uint64_t version,
                                  const std::vector<PrepareReceiver>& receivers, absl::Time deadline);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_BROADCAST_WEIGHTS_CUDA_H_
