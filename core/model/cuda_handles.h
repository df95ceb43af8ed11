// Memory, events and streams of CUDA that free themselves, and CUDA's errors as Status.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_MEMORY_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_MEMORY_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// OK, or what CUDA says of `what`: RESOURCE_EXHAUSTED where memory is short, else INTERNAL. CUDA forgets the error,
// which the next launch of this thread would tell as its own.
absl::Status StepCudaStatus(cudaError_t error, std::string_view what);

struct CudaFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
struct CudaFreeHost {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
struct CudaDestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct CudaDestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct CudaDestroyGraph {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};

using DeviceBlock = std::unique_ptr<std::byte, CudaFree>;
using PinnedBlock = std::unique_ptr<std::byte, CudaFreeHost>;
using CudaStream = std::unique_ptr<CUstream_st, CudaDestroyStream>;
using CudaEvent = std::unique_ptr<CUevent_st, CudaDestroyEvent>;
using CudaGraph = std::unique_ptr<CUgraphExec_st, CudaDestroyGraph>;

// Of the current device. Memory is zero.
absl::StatusOr<DeviceBlock> AllocateDevice(size_t bytes);
absl::StatusOr<PinnedBlock> AllocatePinned(size_t bytes);
// Does not wait for the default stream.
absl::StatusOr<CudaStream> CreateStream();
// Without a time.
absl::StatusOr<CudaEvent> CreateEvent();

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_MEMORY_CUDA_H_
