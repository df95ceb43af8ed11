#include "rollout_workers/device/step_memory_cuda.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::Status StepCudaStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const std::string message = absl::StrCat(std::string(what), " failed: ", cudaGetErrorString(error), " (",
                                           cudaGetErrorName(error), ")");
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::StatusOr<DeviceBlock> AllocateDevice(size_t bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(
      StepCudaStatus(cudaMalloc(&memory, bytes), absl::StrCat("Taking ", bytes, " bytes of the GPU")));
  DeviceBlock owned(static_cast<std::byte*>(memory));
  RETURN_IF_ERROR(StepCudaStatus(cudaMemset(memory, 0, bytes), "Clearing memory of the GPU"));
  return owned;
}

absl::StatusOr<PinnedBlock> AllocatePinned(size_t bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(
      StepCudaStatus(cudaMallocHost(&memory, bytes), absl::StrCat("Pinning ", bytes, " bytes of the host")));
  std::memset(memory, 0, bytes);
  return PinnedBlock(static_cast<std::byte*>(memory));
}

absl::StatusOr<CudaStream> CreateStream() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(
      StepCudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Making a stream"));
  return CudaStream(stream);
}

absl::StatusOr<CudaEvent> CreateEvent() {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(
      StepCudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Making an event"));
  return CudaEvent(event);
}

}  // namespace warpsmith
