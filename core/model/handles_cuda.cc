#include "core/model/handles_cuda.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith {

absl::StatusOr<PinnedBlock> AllocatePinned(size_t bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaMallocHost(&memory, bytes), absl::StrCat("Pinning ", bytes, " bytes of the host")));
  std::memset(memory, 0, bytes);
  return PinnedBlock(static_cast<std::byte*>(memory));
}

absl::StatusOr<CudaStream> CreateStream() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Making a stream"));
  return CudaStream(stream);
}

absl::StatusOr<CudaEvent> CreateEvent() {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Making an event"));
  return CudaEvent(event);
}

}  // namespace warpsmith
