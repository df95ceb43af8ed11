// CUDA's driver: loaded at run time where there is one, and the GPUs that it knows.
#ifndef WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_H_
#define WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/cuda/driver_api.h"

namespace warpsmith::cuda {

// The driver's library, loaded once a process and never unloaded. Thread-safe.
class Driver {
 public:
  // Loads libcuda.so.1 and nothing more: a process that is forked afterwards can use the GPU, one that is forked
  // after Initialise() cannot. NOT_FOUND where there is none, FAILED_PRECONDITION for one that is too old.
  // `path` replaces the search for it, at the first call.
  static absl::StatusOr<const Driver*> Load(const std::string& path = "");

  // Must come before every other call. NOT_FOUND where there is no GPU.
  absl::Status Initialise() const;

  const DriverApi& api() const { return api_; }
  // The library's file: a jail sees no search path.
  const std::string& path() const { return path_; }
  // OK, RESOURCE_EXHAUSTED for want of memory, else INTERNAL with the error's name. After most errors of a
  // kernel the context is of no more use.
  absl::Status Check(Result result, const char* what) const;

 private:
  Driver() = default;
  static absl::StatusOr<const Driver*> LoadOnce(const std::string& path);

  DriverApi api_;
  std::string path_;
};

struct GpuFacts {
  int index = 0;
  std::string name;            // "NVIDIA H100 80GB HBM3"
  std::string uuid;            // "GPU-..."
  std::string driver_version;  // of CUDA that the driver knows, "13.0"
  int capability_major = 0;
  int capability_minor = 0;
  int64_t memory_bytes = 0;
  int64_t l2_cache_bytes = 0;
  int num_multiprocessors = 0;

  // For compilers: "sm_90a". From 9.0 on each architecture has instructions of its own, which the suffix admits.
  std::string architecture() const;
};

// In the order of their numbers; CUDA_VISIBLE_DEVICES decides which there are. Makes no context. Errors as of
// Load() and Initialise().
absl::StatusOr<std::vector<GpuFacts>> ListGpus();

}  // namespace warpsmith::cuda

#endif  // WARPSMITH_REWARD_SERVICE_CUDA_DRIVER_H_
