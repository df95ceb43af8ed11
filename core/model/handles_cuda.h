// Pinned memory, events, streams and graphs of CUDA that free themselves. Memory of the device: DeviceMemory.
#ifndef WARPSMITH_CORE_MODEL_HANDLES_CUDA_H_
#define WARPSMITH_CORE_MODEL_HANDLES_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace warpsmith {

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

using PinnedBlock = std::unique_ptr<std::byte, CudaFreeHost>;
using CudaStream = std::unique_ptr<CUstream_st, CudaDestroyStream>;
using CudaEvent = std::unique_ptr<CUevent_st, CudaDestroyEvent>;
using CudaGraph = std::unique_ptr<CUgraphExec_st, CudaDestroyGraph>;

// Of the current device. Memory is zero.
absl::StatusOr<PinnedBlock> AllocatePinned(size_t bytes);
// Does not wait for the default stream.
absl::StatusOr<CudaStream> CreateStream();
// Without a time.
absl::StatusOr<CudaEvent> CreateEvent();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_HANDLES_CUDA_H_
