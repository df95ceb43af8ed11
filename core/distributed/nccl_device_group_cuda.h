// Collectives among GPUs of one host that one process drives, put on the caller's streams: for decoding, where a step
// has a hundred of them and the host waits for the step. What ranks of a run sum is Communicator's.
#ifndef WARPSMITH_CORE_DISTRIBUTED_NCCL_DEVICE_GROUP_CUDA_H_
#define WARPSMITH_CORE_DISTRIBUTED_NCCL_DEVICE_GROUP_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace warpsmith {

// A rank a GPU. Each rank's calls are made by one thread at a time, all ranks' in the same order, and may be captured:
// then every rank captures in its own thread at the same time. Graphs that hold collectives are destroyed before the
// group. Buffers are plain device memory.
class NcclDeviceGroup {
 public:
  // Connects `devices`, as CUDA counts, of which there are at least two, and runs each collective once.
  // INVALID_ARGUMENT: two of one GPU; FAILED_PRECONDITION: a GPU that is not there, or a pair that cannot reach each
  // other's memory, saying which, or main has not called LeaveMulticastOff (nccl_environment.h); DEADLINE_EXCEEDED
  // after `timeout`; INTERNAL with NCCL's message.
  static absl::StatusOr<std::shared_ptr<NcclDeviceGroup>> Create(const std::vector<int>& devices,
                                                                 absl::Duration timeout);
  // Waits for an abort that is under way, at most 5 s.
  ~NcclDeviceGroup();
  NcclDeviceGroup(const NcclDeviceGroup&) = delete;
  NcclDeviceGroup& operator=(const NcclDeviceGroup&) = delete;

  int size() const;

  // `all` is [ranks, bytes], of which the row of `rank` is filled. Both launch on `stream`, a stream of the rank's GPU,
  // and do not wait. INTERNAL with NCCL's message; ABORTED after Abort.
  absl::Status AllGather(int rank, void* all, int64_t bytes, cudaStream_t stream);
  // Brings the `bytes` at `data` of rank 0 to all.
  absl::Status BroadcastFirst(int rank, void* data, int64_t bytes, cudaStream_t stream);

  // Ends the collectives that are under way, with unspecified results, and refuses all later ones. Any thread; does not
  // wait. What NCCL holds for graphs that still exist is not freed.
  void Abort();

 private:
  struct State;
  explicit NcclDeviceGroup(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_NCCL_DEVICE_GROUP_CUDA_H_
