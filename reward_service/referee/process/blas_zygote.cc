#include "reward_service/referee/process/blas_zygote.h"

#include "core/base/status_macros.h"
#include "reward_service/referee/process/cuda_libraries.h"

namespace warpsmith {

absl::StatusOr<Zygote*> BlasZygote::Get() {
  absl::MutexLock lock(&mutex_);
  if (zygote_ != nullptr) return zygote_.get();
  if (!gpu_) return absl::FailedPreconditionError("a lane without a GPU has no cuBLAS");
  GpuAccess gpu = *gpu_;
  ASSIGN_OR_RETURN(gpu.libraries, FindBlasLibraries(gpu.driver));
  ASSIGN_OR_RETURN(zygote_, Zygote::StartNative(bin_directory_, gpu));
  return zygote_.get();
}

Zygote* BlasZygote::started() {
  absl::MutexLock lock(&mutex_);
  return zygote_.get();
}

}  // namespace warpsmith
