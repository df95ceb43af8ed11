#include "reward_service/referee/libraries/cuda_libraries.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"

namespace warpsmith {
namespace {

constexpr char kRuntime[] = "libcudart.so.13";
constexpr char kProfiler[] = "libcupti.so.13";
constexpr char kToolkit[] = "/usr/local/cuda/lib64";
constexpr char kSystem[] = "/usr/lib/x86_64-linux-gnu";
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

// Python's packages of CUDA, beside Torch.
std::filesystem::path Packages() {
  return std::filesystem::path(GetBuildInfo().torch_dir).parent_path() / "nvidia";
}

struct BlasLibrary {
  const char* name;
  bool is_needed;  // cuDNN does with fewer of its parts, and programs without
};
constexpr BlasLibrary kBlasLibraries[] = {{"libcublasLt.so.13", true},
                                          {"libcublas.so.13", true},
                                          {"libnvrtc-builtins.so.13.0", false},
                                          {"libnvrtc.so.13", false},
                                          {"libcudnn_graph.so.9", false},
                                          {"libcudnn_ops.so.9", false},
                                          {"libcudnn_heuristic.so.9", false},
                                          {"libcudnn_engines_precompiled.so.9", false},
                                          {"libcudnn_engines_runtime_compiled.so.9", false},
                                          {"libcudnn_cnn.so.9", false},
                                          {"libcudnn_adv.so.9", false},
                                          {"libcudnn.so.9", true}};

}  // namespace

absl::StatusOr<std::vector<std::filesystem::path>> FindBlasLibraries(const std::filesystem::path& driver) {
  const std::vector<std::filesystem::path> folders = {Packages() / "cu13" / "lib",
                                                      Packages() / "cudnn" / "lib", kToolkit, kSystem};
  std::vector<std::filesystem::path> libraries;
  for (const char* name : {"libnvidia-nvvm.so.4", "libnvidia-ptxjitcompiler.so.1"}) {
    std::filesystem::path file = FirstOf(name, {driver.parent_path()});
    if (!file.empty()) libraries.push_back(std::move(file));
  }
  for (const auto& [name, is_needed] : kBlasLibraries) {
    std::filesystem::path file = FirstOf(name, folders);
    if (!file.empty()) {
      libraries.push_back(std::move(file));
    } else if (is_needed) {
      return absl::NotFoundError(absl::StrCat("the task allows cuBLAS and cuDNN, and ", name,
                                              " is neither beside Torch nor in ", kToolkit, " or ", kSystem,
                                              ": install nvidia-cublas and nvidia-cudnn-cu13"));
    }
  }
  return libraries;
}

absl::StatusOr<CudaLibraries> FindCudaLibraries(const std::filesystem::path& driver) {
  const std::filesystem::path of_torch = Packages() / "cu13" / "lib";
  CudaLibraries libraries{
      .runtime = FirstOf(kRuntime, {of_torch, kToolkit}),
      .profiler = FirstOf(kProfiler, {driver.parent_path(), of_torch, kToolkit, kToolkitProfiler})};
  if (!libraries.runtime.empty()) return libraries;
  return absl::NotFoundError(absl::StrCat(kRuntime, " is neither beside Torch nor in ", kToolkit));
}

}  // namespace warpsmith
