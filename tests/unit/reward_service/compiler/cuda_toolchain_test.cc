#include "reward_service/compiler/cuda_toolchain.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "core/base/build_info.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A machine with a torch of some CUDA and, where they are made, compilers that tell their version.
struct Machine {
  TemporaryDirectory folder;
  std::filesystem::path torch_dir = folder.path() / "site-packages" / "torch";
  std::filesystem::path packages = folder.path() / "site-packages" / "nvidia" / "cu13";
  std::filesystem::path cuda_home = folder.path() / "cuda";

  explicit Machine(const std::string& cuda = "'13.0'") {
    std::filesystem::create_directories(torch_dir);
    std::ofstream(torch_dir / "version.py")
        << "__version__ = '2.11.0'\ncuda: Optional[str] = " << cuda << "\nhip: Optional[str] = None\n";
  }

  static void Nvcc(const std::filesystem::path& home, const std::string& version) {
    std::filesystem::create_directories(home / "bin");
    std::ofstream(home / "bin" / "nvcc")
        << "#!/bin/sh\necho 'Cuda compilation tools, release x, V" << version << "'\n";
    chmod((home / "bin" / "nvcc").c_str(), 0755);
  }

  absl::StatusOr<CudaToolchain> Probe() const {
    const Toolchain host{.compiler = "/usr/bin/g++", .fingerprint = "f", .system_paths = {"/usr/bin/as"}};
    return ProbeCudaToolchain(host, torch_dir, cuda_home);
  }
};

TEST_CASE("a machine without nvcc is told where one was looked for") {
  const Machine machine;
  const absl::Status status = machine.Probe().status();
  CHECK(absl::IsNotFound(status));
  for (const std::filesystem::path& home : {machine.cuda_home, machine.packages}) {
    CHECK(std::string(status.message()).find((home / "bin").string()) != std::string::npos);
  }
}

TEST_CASE("a Torch without CUDA, and an nvcc of another version, are told with the way out") {
  const absl::Status none = Machine("None").Probe().status();
  CHECK(absl::IsFailedPrecondition(none));
  CHECK(std::string(none.message()).find("is built without CUDA") != std::string::npos);
  const Machine machine;
  Machine::Nvcc(machine.cuda_home, "12.4.99");
  const absl::Status old = machine.Probe().status();
  CHECK(absl::IsFailedPrecondition(old));
  CHECK(
      std::string(old.message()).find("is of version 12.4.99, torch is built with CUDA 13.0; install nvcc") !=
      std::string::npos);
}

TEST_CASE("an nvcc that lacks one of its programs is none, and the other place is looked at") {
  const Machine machine;
  Machine::Nvcc(machine.cuda_home, "12.4.99");
  Machine::Nvcc(machine.packages, "13.0.88");
  const absl::Status status = machine.Probe().status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(
      std::string(status.message()).find((machine.packages / "bin" / "cudafe++").string() + " is missing") !=
      std::string::npos);
}

bool HasUnder(const std::vector<std::filesystem::path>& paths, const std::string& words) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::filesystem::path& path) {
    return path.string().find(words) != std::string::npos;
  });
}

TEST_CASE("CUTLASS's headers are found in either package, and their version is in the fingerprint") {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  REQUIRE(host.ok());
  const absl::StatusOr<CudaToolchain> own = ProbeCudaToolchain(*host, GetBuildInfo().torch_dir);
  if (!own.ok()) {
    WARN("skipped: " << own.status().message());
    return;
  }
  const std::filesystem::path cuda_home = std::filesystem::path(own->compiler).parent_path().parent_path();
  for (const char* const package : {"cutlass_library/source/include", "flashinfer/data/cutlass/include"}) {
    const Machine machine;
    const auto probe = [&] { return ProbeCudaToolchain(*host, machine.torch_dir, cuda_home); };
    const absl::StatusOr<CudaToolchain> without = probe();
    REQUIRE(without.ok());
    CHECK(without->include_flags.empty());
    const std::filesystem::path headers = machine.torch_dir.parent_path() / package;
    std::filesystem::create_directories(headers / "cutlass");
    CHECK(probe()->include_flags.empty());  // an empty folder
    std::ofstream(headers / "cutlass/version.h") << "#define CUTLASS_MAJOR 4";
    const absl::StatusOr<CudaToolchain> with = probe();
    REQUIRE(with.ok());
    const std::string folder = std::filesystem::canonical(headers).string();
    CHECK(with->include_flags == std::vector<std::string>{"-isystem", folder});
    CHECK(HasUnder(with->read_only_paths, folder));
    CHECK(with->fingerprint != without->fingerprint);
    std::ofstream(headers / "cutlass/version.h") << "#define CUTLASS_MAJOR 5";
    CHECK(probe()->fingerprint != with->fingerprint);
  }
}

TEST_CASE(
    "headers that were upgraded without nvcc are in the fingerprint, by their version or by their size") {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  REQUIRE(host.ok());
  const absl::StatusOr<CudaToolchain> own = ProbeCudaToolchain(*host, GetBuildInfo().torch_dir);
  if (!own.ok()) {
    WARN("skipped: " << own.status().message());
    return;
  }
  // This machine's nvcc with other headers.
  const Machine machine;
  const std::filesystem::path cuda_home = std::filesystem::path(own->compiler).parent_path().parent_path();
  const std::filesystem::path cub = machine.cuda_home / "include" / "cccl" / "cub";
  const std::filesystem::path cudnn = machine.packages.parent_path() / "cudnn" / "include";
  for (const auto& folder : {cub, cudnn, machine.packages / "include"})
    std::filesystem::create_directories(folder);
  for (const char* const name : {"bin", "nvvm"})
    std::filesystem::create_directory_symlink(cuda_home / name, machine.cuda_home / name);
  const auto write = [](const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  write(machine.cuda_home / "include" / "cuda_runtime.h", "int a;");
  write(machine.packages / "include" / "cublasLt.h", "int a;");
  write(cudnn / "cudnn.h", "int a;");
  std::set<std::string> fingerprints;
  const auto probe = [&] {
    const auto toolchain = ProbeCudaToolchain(*host, machine.torch_dir, machine.cuda_home);
    REQUIRE(toolchain.ok());
    fingerprints.insert(toolchain->fingerprint);
  };
  probe();
  probe();
  CHECK(fingerprints.size() == 1);
  const std::pair<std::filesystem::path, std::string> upgrades[] = {
      {cub / "version.cuh", "#define CUB_VERSION 1"},
      {cub / "version.cuh", "#define CUB_VERSION 2"},
      {cub / "device.cuh", "int a;"},
      {cub / "device.cuh", "int ab;"},
      {cudnn / "cudnn_version.h", "#define CUDNN_MAJOR 9"},
      {cudnn / "cudnn.h", "int ab;"},
      {machine.packages / "include" / "cublasLt.h", "int ab;"}};
  size_t num_upgrades = 0;
  for (const auto& [file, text] : upgrades) {
    write(file, text);
    probe();
    INFO(file.string());
    CHECK(fingerprints.size() == ++num_upgrades + 1);
  }
}

TEST_CASE("this machine's nvcc names itself, and no library of CUDA is among what it reads") {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  REQUIRE(host.ok());
  const absl::StatusOr<CudaToolchain> toolchain = ProbeCudaToolchain(*host, GetBuildInfo().torch_dir);
  if (!toolchain.ok()) {
    WARN("skipped: " << toolchain.status().message());
    return;
  }
  CHECK(toolchain->version.substr(0, 8) == "nvcc 13.");
  CHECK(toolchain->fingerprint != host->fingerprint);
  std::vector<std::filesystem::path> all = toolchain->system_paths;
  all.insert(all.end(), toolchain->read_only_paths.begin(), toolchain->read_only_paths.end());
  for (const char* words : {"/ptxas", "/cicc", "/libdevice", "/include", "/cc1plus"}) {
    INFO(words);
    CHECK(HasUnder(all, words));
  }
  CHECK_FALSE(HasUnder(all, "libcu"));
  for (const std::filesystem::path& path : all) {
    INFO(path.string());
    CHECK(path.filename() != "lib");
    CHECK(path.filename() != "lib64");
  }
  for (const std::filesystem::path& path : all) CHECK(path == std::filesystem::canonical(path));
}

}  // namespace
}  // namespace warpsmith
