// The receiving side of a broadcast: weights in memory of this process's GPUs, beside those in use.
#ifndef WARPSMITH_CORE_MODEL_RECEIVED_WEIGHTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_RECEIVED_WEIGHTS_CUDA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/offered_memory.h"
#include "core/model/weight_source.h"

namespace warpsmith {

// Of one GPU, or of several that share a model: then the first alone is a member of the broadcast. Each buffer arrives
// in its memory, is checked there, and is cut into the shards, which it writes to the memories of all.
class ReceivedWeights final : public WeightSource {
 public:
  struct Shard;  // what one GPU keeps

  // Takes the memory, joins the broadcast on devices[0] and receives all of it; shard i is for devices[i]. Costs as
  // much memory as the weights in use on every GPU, and where there are several, that of the largest buffer on the
  // first; NCCL takes some besides. The errors of CheckOfferedMemory, CheckReceiverPlace and CheckArrived, and those of
  // NcclBroadcast: all within the deadline and ten seconds; ABORTED: it was given up; RESOURCE_EXHAUSTED: no room,
  // before any member is met. Logs bytes, seconds and GB/s.
  static absl::StatusOr<std::unique_ptr<ReceivedWeights>> Receive(const ModelConfig& config,
                                                                  OfferedBroadcast offered,
                                                                  const std::vector<int>& devices,
                                                                  absl::Time deadline);
  ~ReceivedWeights() override;
  ReceivedWeights(const ReceivedWeights&) = delete;
  ReceivedWeights& operator=(const ReceivedWeights&) = delete;

  // Of one shard.
  int64_t num_elements() const override;
  // The shard that is for `device`; INVALID_ARGUMENT where there is none. One thread a device may call it at a time.
  absl::Status CopyTo(uint16_t* elements, int device, absl::Time deadline) override;

 private:
  explicit ReceivedWeights(std::vector<std::unique_ptr<Shard>> shards);

  const std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_RECEIVED_WEIGHTS_CUDA_H_
