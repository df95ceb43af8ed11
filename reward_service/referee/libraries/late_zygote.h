// A zygote that few programs need.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_LATE_ZYGOTE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_LATE_ZYGOTE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/referee/process/zygote.h"

namespace warpsmith {

// Starts its zygote for the first program that needs it: that takes seconds and some 100 MiB. Thread-safe.
class LateZygote {
 public:
  using Start = std::function<absl::StatusOr<std::unique_ptr<Zygote>>()>;
  explicit LateZygote(Start start) : start_(std::move(start)) {}

  // Returns the zygote, which is started if need be. REQUIRES: the calling thread lives as long as the referee, as for
  // Zygote::StartNative. Errors: those of the start; the next call tries again.
  absl::StatusOr<Zygote*> Get();
  // Returns null where no program has needed it yet.
  Zygote* started();

 private:
  const Start start_;
  absl::Mutex mutex_;
  std::unique_ptr<Zygote> zygote_ ABSL_GUARDED_BY(mutex_);
};

// Makes the zygote of native jails that have cuBLAS and cuDNN. Its start fails as FindBlasLibraries() and
// Zygote::StartNative() do; FAILED_PRECONDITION without a GPU.
std::unique_ptr<LateZygote> NativeZygoteWithBlas(std::filesystem::path bin_directory,
                                                 std::optional<GpuAccess> gpu);

// Makes the zygote of Python jails where libraries do products, which are cuBLAS and cuDNN on a GPU. The arguments are
// those of Zygote::StartPython(), and its start fails as that does, or FindBlasLibraries().
std::unique_ptr<LateZygote> PythonZygoteWithProducts(std::filesystem::path python,
                                                     std::filesystem::path share_directory,
                                                     std::vector<std::filesystem::path> read_only_paths,
                                                     int num_threads, std::optional<GpuAccess> gpu);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_LIBRARIES_LATE_ZYGOTE_H_
