// What the numbers mean that native CUDA programs return.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CUDA_ERROR_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CUDA_ERROR_TEXT_H_

#include <cstdint>
#include <string>

namespace warpsmith {

// ", which is cudaErrorInvalidConfiguration: ..." for the numbers of CUDA's runtime that a launch is likely to give,
// with what to look at; empty for others. A program may mean something else by it.
std::string CudaErrorText(int64_t result);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CUDA_ERROR_TEXT_H_
