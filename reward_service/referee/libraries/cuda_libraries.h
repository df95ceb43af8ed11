// Which files of CUDA's libraries jails with a GPU get.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_CUDA_LIBRARIES_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_CUDA_LIBRARIES_H_

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

struct CudaLibraries {
  std::filesystem::path runtime;   // libcudart
  std::filesystem::path profiler;  // CUPTI; empty where there is none
};

// Those beside Torch, or of a toolkit; a profiler that lies beside the driver's file comes first. NOT_FOUND where there
// is no runtime.
absl::StatusOr<CudaLibraries> FindCudaLibraries(const std::filesystem::path& driver);

// cuBLAS, cuBLASLt, cuDNN, what these load themselves, and the compiler of PTX that lies beside the driver's file, for
// kernels that they bring in no other form: each behind those that it needs. NOT_FOUND, with the way out, where one of
// the three is missing.
absl::StatusOr<std::vector<std::filesystem::path>> FindBlasLibraries(const std::filesystem::path& driver);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_CUDA_LIBRARIES_H_
