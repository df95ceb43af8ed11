#include "reward_service/referee/cuda_libraries.h"

#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"

namespace warpsmith {
namespace {

constexpr char kRuntime[] = "libcudart.so.13";
constexpr char kProfiler[] = "libcupti.so.13";
constexpr char kToolkit[] = "/usr/local/cuda/lib64";
constexpr char kToolkitProfiler[] = "/usr/local/cuda/extras/CUPTI/lib64";

// The first of these files that is there, by its real path; empty where none is.
std::filesystem::path FirstOf(const char* name, const std::vector<std::filesystem::path>& folders) {
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    std::filesystem::path file = std::filesystem::canonical(folder / name, error);
    if (!error) return file;
  }
  return {};
}

}  // namespace

absl::StatusOr<CudaLibraries> FindCudaLibraries(const std::filesystem::path& driver) {
  const std::filesystem::path packages = std::filesystem::path(GetBuildInfo().torch_dir).parent_path();
  const std::filesystem::path of_torch = packages / "nvidia" / "cu13" / "lib";
  CudaLibraries libraries{
      .runtime = FirstOf(kRuntime, {of_torch, kToolkit}),
      .profiler = FirstOf(kProfiler, {driver.parent_path(), of_torch, kToolkit, kToolkitProfiler})};
  if (!libraries.runtime.empty()) return libraries;
  return absl::NotFoundError(absl::StrCat(kRuntime, " is neither beside Torch nor in ", kToolkit));
}

}  // namespace warpsmith
