// The zygote of native jails that have cuBLAS and cuDNN.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_BLAS_ZYGOTE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_BLAS_ZYGOTE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/referee/process/zygote.h"

namespace warpsmith {

// Starts it for the first program that may use these libraries, for few tasks allow them: loading takes a second and
// 100 MiB. Other programs have a zygote without. Thread-safe.
class BlasZygote {
 public:
  BlasZygote(std::filesystem::path bin_directory, std::optional<GpuAccess> gpu)
      : bin_directory_(std::move(bin_directory)), gpu_(std::move(gpu)) {}

  // Call from a thread that lives as long as the referee, as Zygote::StartNative. FAILED_PRECONDITION without a GPU;
  // otherwise as FindBlasLibraries and StartNative, and the next call tries again.
  absl::StatusOr<Zygote*> Get();
  // Null where no program has wanted it yet.
  Zygote* started();

 private:
  const std::filesystem::path bin_directory_;
  const std::optional<GpuAccess> gpu_;
  absl::Mutex mutex_;
  std::unique_ptr<Zygote> zygote_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_BLAS_ZYGOTE_H_
