#include "reward_service/referee/libraries/late_zygote.h"

#include "core/base/status_macros.h"
#include "reward_service/referee/libraries/cuda_libraries.h"

namespace warpsmith {

absl::StatusOr<Zygote*> LateZygote::Get() {
  absl::MutexLock lock(&mutex_);
  if (zygote_ == nullptr) {
    ASSIGN_OR_RETURN(zygote_, start_());
  }
  return zygote_.get();
}

Zygote* LateZygote::started() {
  absl::MutexLock lock(&mutex_);
  return zygote_.get();
}

std::unique_ptr<LateZygote> NativeZygoteWithBlas(std::filesystem::path bin_directory,
                                                 std::optional<GpuAccess> gpu) {
  return std::make_unique<LateZygote>([=]() -> absl::StatusOr<std::unique_ptr<Zygote>> {
    if (!gpu) return absl::FailedPreconditionError("a lane without a GPU has no cuBLAS");
    GpuAccess with_blas = *gpu;
    ASSIGN_OR_RETURN(with_blas.libraries, FindBlasLibraries(gpu->driver));
    return Zygote::StartNative(bin_directory, with_blas);
  });
}

std::unique_ptr<LateZygote> PythonZygoteWithProducts(std::filesystem::path python,
                                                     std::filesystem::path share_directory,
                                                     std::vector<std::filesystem::path> read_only_paths,
                                                     int num_threads, std::optional<GpuAccess> gpu) {
  return std::make_unique<LateZygote>([=]() -> absl::StatusOr<std::unique_ptr<Zygote>> {
    std::optional<GpuAccess> with_blas = gpu;
    if (gpu) {
      ASSIGN_OR_RETURN(with_blas->libraries, FindBlasLibraries(gpu->driver));
    }
    return Zygote::StartPython(python, share_directory, read_only_paths, num_threads, with_blas,
                               Zygote::Products::kByLibraries);
  });
}

}  // namespace warpsmith
