// Which compiler builds CUDA candidates, and what it may read.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_TOOLCHAIN_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_TOOLCHAIN_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

// NVRTC of nvcc's own version.
struct NvrtcFiles {
  std::filesystem::path library;
  std::vector<std::filesystem::path> files;            // it, and what it loads
  std::vector<std::filesystem::path> include_folders;  // of CUDA's headers
};

struct CudaToolchain {
  std::string compiler;       // absolute path of nvcc, without links
  std::string host_compiler;  // that nvcc calls
  std::string version;        // "nvcc 13.0.88", for people
  // SHA-256, in hex, of version, the host compiler's fingerprint, and what tells one version from another of CUDA's
  // headers, CUTLASS's, those of cuBLAS and cuDNN, and of NVRTC.
  std::string fingerprint;
  std::vector<std::string> link_flags;  // the host compiler's, which choose the linker
  // All that compiling a candidate reads of the system, as Toolchain::system_paths: the programs of nvcc with
  // their libraries, CUDA's headers, libdevice, and what the host compiler needs. None of CUDA's libraries.
  std::vector<std::filesystem::path> system_paths;
  // Those of nvcc's that lie outside of /usr, and CUTLASS's headers.
  std::vector<std::filesystem::path> read_only_paths;
  // What has programs find CUTLASS's headers; empty where they are not there.
  std::vector<std::string> include_flags;
  // What has the host compiler find CUDA's headers, in a half of a program that nvcc does not compile.
  std::vector<std::string> host_include_flags;
  // Folders with the headers of cuBLAS and cuDNN beside nvcc's own, for programs that may use these libraries; absent
  // where one of them has no headers here.
  std::optional<std::vector<std::filesystem::path>> blas_include_folders;
  std::optional<NvrtcFiles> nvrtc;  // absent where there is none of this version
};

// Looks for nvcc in `cuda_home`, then among the Python packages beside `torch_dir`, and takes the first whose
// major version is that of Torch's CUDA. NOT_FOUND when there is none; FAILED_PRECONDITION when Torch has no CUDA,
// or none of the compilers is of its version or whole. Both with the way out. CUTLASS's headers are those of the
// package nvidia-cutlass, else of flashinfer-python, beside `torch_dir`.
absl::StatusOr<CudaToolchain> ProbeCudaToolchain(const Toolchain& host,
                                                 const std::filesystem::path& torch_dir,
                                                 const std::filesystem::path& cuda_home = "/usr/local/cuda");

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_TOOLCHAIN_H_
