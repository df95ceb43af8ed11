// What tokens of CUDA mean beside those of C++: launches, waiting, memory of the GPU, and which thread one is.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_CUDA_TOKENS_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_CUDA_TOKENS_H_

#include <optional>
#include <string_view>
#include <vector>

namespace warpsmith {

struct LaunchTokens {
  // The grid, or the block, is written as the number 1.
  bool one_block = false;
  bool one_thread = false;
};

// The launch whose "<<<", or whose function of CUDA's runtime (cudaLaunchKernel and its like), begins at `position`.
// Tokens are those of CppTokens, views into one text.
std::optional<LaunchTokens> LaunchAt(const std::vector<std::string_view>& tokens, size_t position);

// Whether a function of CUDA's runtime has the host wait for the GPU, or asks for the GPU's memory.
bool Synchronises(std::string_view word);
bool AllocatesOnGpu(std::string_view word);

// The variable that the statement at `position` declares as the thread's own index: `int i = blockIdx.x * blockDim.x +
// threadIdx.x;` and sums like it, in which neighbours among threads have neighbouring values. Empty for any other.
std::string_view ThreadVariable(const std::vector<std::string_view>& tokens, size_t position);

// Whether the statement at `position` declares a pointer: `const float* row = ...`.
bool DeclaresPointer(const std::vector<std::string_view>& tokens, size_t position);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_CUDA_TOKENS_H_
