#include "reward_service/compiler/cuda_toolchain.h"

#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kVersionFileBytesMax = 1 << 16;
constexpr int kStampedFilesMax = 50'000;  // CUDA's headers are 4,000, and CUTLASS's 2,000
constexpr char kWayOut[] = "./dev test installs one beside torch";

// What nvcc runs or reads itself, from its home.
constexpr const char* kPrograms[] = {"bin/nvcc", "bin/cudafe++", "bin/ptxas", "bin/fatbinary",
                                     "nvvm/bin/cicc"};
constexpr const char* kFiles[] = {"bin/nvcc.profile", "nvvm/libdevice"};
// A toolkit has the second, the Python packages the first, and some have the first as a link.
constexpr const char* kHeaders[] = {"include", "targets/x86_64-linux/include"};

// CUTLASS's headers, in the Python packages that carry them.
constexpr const char* kCutlassHeaders[] = {"cutlass_library/source/include",
                                           "flashinfer/data/cutlass/include"};

// The text between the first two quotes of the line of `text` that begins with `key`.
std::string QuotedValue(const std::string& text, std::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.substr(0, key.size()) != absl::string_view(key.data(), key.size())) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '\'');
    return parts.size() > 2 ? parts[1] : "";
  }
  return "";
}

// "13.0.88" of "... release 13.0, V13.0.88".
std::string VersionIn(const std::string& output) {
  const size_t begin = output.find(", V");
  if (begin == std::string::npos) return "";
  const std::string rest = output.substr(begin + 3);
  return rest.substr(0, rest.find_first_not_of("0123456789."));
}

std::string Major(const std::string& version) { return version.substr(0, version.find('.')); }

// What tells one version of a folder of headers from another, on any machine: names and sizes of all files, and the
// text of those that say a version. Links to folders are not followed.
std::string StampOf(const std::filesystem::path& folder) {
  std::set<std::string> lines;
  std::error_code error;
  const auto skips = std::filesystem::directory_options::skip_permission_denied;
  for (auto it = std::filesystem::recursive_directory_iterator(folder, skips, error);
       !error && it != std::filesystem::recursive_directory_iterator() && lines.size() < kStampedFilesMax;
       it.increment(error)) {
    std::error_code is_none;
    const uintmax_t num_bytes = it->file_size(is_none);
    if (is_none) continue;
    std::string line = absl::StrCat(it->path().lexically_relative(folder).string(), " ", num_bytes);
    if (absl::StrContains(it->path().filename().string(), "version"))
      absl::StrAppend(&line, "\n", ReadFile(it->path(), kVersionFileBytesMax).value_or(""));
    lines.insert(std::move(line));
  }
  return Sha256Hex(absl::StrJoin(lines, "\n"));
}

bool IsSystem(const std::filesystem::path& path) { return path.string().rfind("/usr/", 0) == 0; }

// Of CUDA's headers in `folder`; none where they are not there, or are where the host compiler looks by itself.
std::vector<std::string> HostIncludeFlags(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder == "/usr/include" || !std::filesystem::exists(folder / "cuda_runtime.h", error)) return {};
  // The second has what cuda_fp16.h includes.
  return {"-isystem", folder.string(), "-isystem", (folder / "cccl").string()};
}

// A compiler is whole when all that it runs is there.
absl::Status AddPaths(const std::filesystem::path& home, CudaToolchain* toolchain) {
  std::vector<std::string> programs;
  std::set<std::filesystem::path> paths;
  for (const char* name : kPrograms) programs.push_back((home / name).string());
  std::vector<std::string> needed = programs;
  for (const char* name : kFiles) needed.push_back((home / name).string());
  for (const std::string& path : needed) {
    std::error_code error;
    paths.insert(std::filesystem::canonical(path, error));
    if (error) return absl::FailedPreconditionError(absl::StrCat(path, " is missing; ", kWayOut));
  }
  for (const char* name : kHeaders) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(home / name, error);
    if (error) continue;
    paths.insert(folder);
    if (toolchain->host_include_flags.empty()) toolchain->host_include_flags = HostIncludeFlags(folder);
  }
  ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> libraries, LibrariesOf(programs));
  paths.insert(libraries.begin(), libraries.end());
  for (const std::filesystem::path& path : paths) {
    (IsSystem(path) ? toolchain->system_paths : toolchain->read_only_paths).push_back(path);
  }
  return absl::OkStatus();
}

// Returns what tells which they are.
std::string AddCutlass(const std::filesystem::path& packages, CudaToolchain* toolchain) {
  for (const char* name : kCutlassHeaders) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(packages / name, error);
    if (error) continue;
    const absl::StatusOr<std::string> version =
        ReadFile(folder / "cutlass" / "version.h", kVersionFileBytesMax);
    if (!version.ok()) continue;
    toolchain->read_only_paths.push_back(folder);
    toolchain->include_flags = {"-isystem", folder.string()};
    return absl::StrCat(folder.string(), "\n", StampOf(folder));
  }
  return "";
}

// Of those beside nvcc, which finds them by itself, else of the Python packages in `packages`, CUDA's, and beside it.
std::optional<std::vector<std::filesystem::path>> BlasIncludeFolders(const std::filesystem::path& home,
                                                                     const std::filesystem::path& packages) {
  std::vector<std::filesystem::path> folders;
  const std::pair<const char*, std::filesystem::path> headers[] = {
      {"cublasLt.h", packages / "include"}, {"cudnn.h", packages.parent_path() / "cudnn" / "include"}};
  for (const auto& [header, folder] : headers) {
    std::error_code error;
    if (std::filesystem::exists(home / "include" / header, error)) continue;
    if (!std::filesystem::exists(folder / header, error)) return std::nullopt;
    folders.push_back(std::filesystem::canonical(folder, error));
  }
  return folders;
}

// Beside nvcc, else of the Python package. What it loads has CUDA's version in its name.
std::optional<NvrtcFiles> FindNvrtc(const std::filesystem::path& home, const std::filesystem::path& packages,
                                    const std::string& version) {
  const std::string minor = version.substr(0, version.find('.', version.find('.') + 1));
  for (const std::filesystem::path& folder : {home / "lib64", home / "lib", packages / "lib"}) {
    std::error_code missing, missing_too;
    const auto library =
        std::filesystem::canonical(folder / absl::StrCat("libnvrtc.so.", Major(version)), missing);
    const auto builtins =
        std::filesystem::canonical(folder / absl::StrCat("libnvrtc-builtins.so.", minor), missing_too);
    if (missing || missing_too) continue;
    NvrtcFiles nvrtc{.library = library, .files = {library, folder / builtins.filename(), builtins}};
    for (const char* name : kHeaders) {
      std::error_code error;
      const std::filesystem::path headers = std::filesystem::canonical(home / name, error);
      if (error || !std::filesystem::exists(headers / "cuda_fp16.h", error)) continue;
      nvrtc.include_folders = {headers, headers / "cccl"};
      return nvrtc;
    }
  }
  return std::nullopt;
}

// Of CUDA's headers with CUB, those of cuBLAS and cuDNN, and NVRTC: each can be upgraded without nvcc.
std::string StampOfParts(const std::filesystem::path& home, const CudaToolchain& toolchain) {
  std::set<std::filesystem::path> folders;
  for (const char* name : kHeaders) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(home / name, error);
    if (!error) folders.insert(folder);
  }
  if (toolchain.blas_include_folders)
    folders.insert(toolchain.blas_include_folders->begin(), toolchain.blas_include_folders->end());
  std::string stamps;
  for (const std::filesystem::path& folder : folders) absl::StrAppend(&stamps, StampOf(folder), "\n");
  if (!toolchain.nvrtc) return stamps;
  for (const std::filesystem::path& file : toolchain.nvrtc->files) {
    std::error_code error;
    absl::StrAppend(&stamps, file.filename().string(), " ", std::filesystem::file_size(file, error), "\n");
  }
  return stamps;
}

absl::StatusOr<CudaToolchain> ProbeAt(const std::filesystem::path& home, const Toolchain& host,
                                      const std::filesystem::path& site_packages,
                                      const std::filesystem::path& packages,
                                      const std::string& cuda_version) {
  const std::filesystem::path compiler = home / "bin" / "nvcc";
  ASSIGN_OR_RETURN(const std::string output, OutputOf({compiler.string(), "--version"}));
  const std::string version = VersionIn(output);
  if (Major(version) != Major(cuda_version)) {
    return absl::FailedPreconditionError(
        absl::StrCat(compiler.string(), " is of version ", version, ", torch is built with CUDA ",
                     cuda_version, "; install nvcc ", Major(cuda_version), ", or ", kWayOut));
  }
  CudaToolchain toolchain{.compiler = compiler.string(),
                          .host_compiler = host.compiler,
                          .version = absl::StrCat("nvcc ", version),
                          .link_flags = host.link_flags,
                          .system_paths = host.system_paths};
  RETURN_IF_ERROR(AddPaths(home, &toolchain));
  const std::string cutlass = AddCutlass(site_packages, &toolchain);
  toolchain.nvrtc = FindNvrtc(home, packages, version);
  toolchain.blas_include_folders = BlasIncludeFolders(home, packages);
  toolchain.fingerprint = Sha256Hex(absl::StrCat(toolchain.version, "\n", cutlass, "\n",
                                                 StampOfParts(home, toolchain), "\n", host.fingerprint));
  return toolchain;
}

}  // namespace

absl::StatusOr<CudaToolchain> ProbeCudaToolchain(const Toolchain& host,
                                                 const std::filesystem::path& torch_dir,
                                                 const std::filesystem::path& cuda_home) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(torch_dir / "version.py", kVersionFileBytesMax));
  const std::string cuda_version = QuotedValue(text, "cuda");
  if (cuda_version.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(torch_dir.string(), " is built without CUDA; install torch of a CUDA version"));
  }
  const std::filesystem::path site_packages = torch_dir.parent_path();
  const std::filesystem::path packages = site_packages / "nvidia" / absl::StrCat("cu", Major(cuda_version));
  absl::Status status = absl::NotFoundError(absl::StrCat("no nvcc in ", (cuda_home / "bin").string(), " or ",
                                                         (packages / "bin").string(), "; ", kWayOut));
  for (const std::filesystem::path& place : {cuda_home, packages}) {
    std::error_code error;
    const std::filesystem::path home = std::filesystem::canonical(place, error);
    if (error || !std::filesystem::exists(home / "bin" / "nvcc", error)) continue;
    absl::StatusOr<CudaToolchain> toolchain = ProbeAt(home, host, site_packages, packages, cuda_version);
    if (toolchain.ok()) return toolchain;
    status = toolchain.status();
  }
  return status;
}

}  // namespace warpsmith
