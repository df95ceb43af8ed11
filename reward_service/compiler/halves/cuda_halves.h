// A CUDA program in two halves: what runs on the GPU, for NVRTC, and what runs on the host, for a C++ compiler.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_HALVES_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_HALVES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

struct CudaHalves {
  std::string device;  // kernels, functions for the device, types and constants
  // Types, constants and functions for the host. Kernels are empty functions there, and launches are calls of
  // warpsmith::Launch (reward_service/compiler/native_host.h), which the library's table of kernels serves.
  std::string host;
  // Expressions that name the kernels that the host's half names, as NVRTC takes them: "scale<float, 4>". In its own
  // table they have this order.
  std::vector<std::string> kernels;
};

// None for a program that is not known to mean the same in halves: with conditional directives, variables in the GPU's
// memory, kernels that are overloaded, specialised or declared ahead, or headers that only nvcc is known to read. Where
// a half lacks what the program needs, it does not compile; it never compiles to something else.
std::optional<CudaHalves> SplitCuda(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_HALVES_H_
