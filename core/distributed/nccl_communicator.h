// The communicator of GPUs: NCCL, one device a process.
#ifndef WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

// Works on memory of device `local_rank` of the environment, on a stream of its own; a call returns when the
// collective is done on the device. Data must be ready: synchronise the producing stream first. The NCCL
// communicator is non-blocking, so that a peer that is gone or late never keeps this process: the watchdog
// aborts it, its kernels end, and the call returns. Built with the preset `cuda` only.
class NcclCommunicator : public Communicator {
 public:
  // Meets the other ranks within `options.deadline` through the rendezvous store. UNAVAILABLE or
  // DEADLINE_EXCEEDED with NCCL's own words otherwise.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Create(const ProcessGroupEnvironment& environment,
                                                                  const CommunicatorOptions& options);
  ~NcclCommunicator() override;

 private:
  struct State;
  NcclCommunicator(const ProcessGroupEnvironment& environment, const CommunicatorOptions& options,
                   std::unique_ptr<State> state);

  absl::Status DoAllReduceSum(void* data, int64_t count, ElementType type) override;
  absl::Status DoBroadcast(void* data, int64_t num_bytes, int root) override;
  absl::Status DoAllGather(const void* send, void* receive, int64_t num_bytes) override;
  absl::Status DoBarrier() override;
  void Interrupt() override;

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_
