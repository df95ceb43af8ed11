#include "tests/support/fake_gpu.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "reward_service/cuda/driver.h"

namespace warpsmith {

std::filesystem::path FakeCudaFolder() { return FAKE_CUDA_FOLDER; }

std::filesystem::path ShareWithFakeGpu(const std::filesystem::path& share,
                                       const std::filesystem::path& folder) {
  const std::filesystem::path copy = folder / "share" / "warpsmith";
  std::filesystem::create_directories(copy.parent_path());
  std::filesystem::copy(share, copy, std::filesystem::copy_options::recursive);
  std::filesystem::copy_file("tests/support/fake_cuda/fake_gpu_tensors.py", copy / "jail" / "gpu_tensors.py",
                             std::filesystem::copy_options::overwrite_existing);
  return copy;
}

std::string HandleOf(int fd) {
  std::string path = absl::StrCat("/proc/", getpid(), "/fd/", fd);
  path.resize(sizeof(cuda::IpcHandle), '\0');
  return absl::BytesToHexString(path);
}

FakeGpu::FakeGpu(const std::string& script)
    : file_(std::filesystem::temp_directory_path() / absl::StrCat("fake-cuda-", getpid())) {
  Say(script);
  setenv("FAKE_CUDA", file_.c_str(), /*overwrite=*/1);
  WS_CHECK(cuda::Driver::Load((FakeCudaFolder() / "libcuda.so.1").string()).ok());
}

FakeGpu::~FakeGpu() {
  unsetenv("FAKE_CUDA");
  std::error_code error;
  std::filesystem::remove(file_, error);
}

void FakeGpu::Say(const std::string& script) { WS_CHECK(WriteFileAtomically(file_, script).ok()); }

std::string FakeGpu::script() const { return ReadFile(file_).value_or(""); }

}  // namespace warpsmith
