#include "reward_service/referee/process/cuda_error_text.h"

#include "absl/strings/str_cat.h"

namespace warpsmith {

std::string CudaErrorText(int64_t result) {
  constexpr struct {
    int64_t number;
    const char* text;
  } kErrors[] = {
      {1,
       "cudaErrorInvalidValue: an argument is out of its limits: a grid of over 2^31 - 1 blocks, say, or "
       "shared memory over 48 KiB without its attribute"},
      {2, "cudaErrorMemoryAllocation: the GPU is out of memory"},
      {9, "cudaErrorInvalidConfiguration: a launch has an empty grid, or a block of over 1,024 threads"},
      {98, "cudaErrorInvalidDeviceFunction: a launch names no kernel"},
      {209, "cudaErrorNoKernelImageForDevice: the machine code is of another architecture"},
      {400, "cudaErrorInvalidResourceHandle: a stream or an event is none"},
      {700, "cudaErrorIllegalAddress: a kernel reads or writes outside of its memory"},
      {701, "cudaErrorLaunchOutOfResources: a block wants more registers than there are"},
      {716, "cudaErrorMisalignedAddress: a wide load or store is not aligned to its width"},
      {719, "cudaErrorLaunchFailure: a kernel has failed"},
  };
  for (const auto& [number, text] : kErrors) {
    if (number == result) return absl::StrCat(", which is ", text);
  }
  return "";
}

}  // namespace warpsmith
