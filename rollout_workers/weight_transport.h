// How new weights come to a worker: the transports that a manifest may name, behind one interface.
//
// Includes nothing of LibTorch.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHT_TRANSPORT_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHT_TRANSPORT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "rollout_workers/placement.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// OfferedWeights::transport of a broadcast.
inline constexpr char kNcclTransport[] = "nccl";

// Returns whether an engine at this placement takes weights by cuda_memory.
bool TakesCudaMemory(const std::optional<CudaPlacement>& cuda);

class WeightTransport {
 public:
  virtual ~WeightTransport() = default;

  // Makes what is offered ready beside the weights in use, which it does not touch, and checks all of it: layout
  // (FAILED_PRECONDITION), dtype, names and sizes (INVALID_ARGUMENT), and every checksum (DATA_LOSS). NOT_FOUND or
  // UNAVAILABLE: nothing is offered there; DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED. Logs bytes, seconds and GB/s.
  virtual absl::StatusOr<LoadedWeights> Prepare(const OfferedWeights& offered, absl::Time deadline) = 0;
};

// For an engine on `cuda`, or on the CPU. By name:
//
//   file          a file that both see, read into the host's memory; a GPU's engine keeps its dtype. Also for no name
//   cuda_memory   memory of a GPU of this host, by descriptor, which a DescriptorServer at the path hands out: mapped
//                 here and checked by the device, copied on the device when it is committed. In what
//                 the GPU computes in, bfloat16 or float16
//   nccl          a broadcast to many workers at once, of any host: received into memory of the GPUs, checked by the
//                 device, copied on it when it is committed. The call is this worker's part: it waits for the others.
//                 Until then every GPU holds the weights twice. Likewise
//
// INVALID_ARGUMENT, with these names, for any other; FAILED_PRECONDITION: cuda_memory or nccl on the CPU or on GPUs in
// float32, cuda_memory on several GPUs.
absl::StatusOr<std::unique_ptr<WeightTransport>> MakeTransport(const std::string& name,
                                                               const ModelConfig& config,
                                                               const std::optional<CudaPlacement>& cuda);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHT_TRANSPORT_H_
