#include "reward_service/server/read_ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <utility>

#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr int64_t kPieceBytes = 8 << 20;

}  // namespace

std::vector<std::filesystem::path> TorchLibraries(const std::filesystem::path& torch_dir) {
  std::vector<std::filesystem::path> files;
  for (const char* name :
       {"libtorch_python.so", "libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"})
    files.push_back(torch_dir / "lib" / name);
  return files;
}

ReadAhead::ReadAhead(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "read-ahead");
    for (const std::filesystem::path& file : files_) Read(file);
  });
}

ReadAhead::~ReadAhead() {
  stopping_ = true;
  thread_.join();
}

void ReadAhead::Read(const std::filesystem::path& file) const {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return;
  for (int64_t start = 0; start < info.st_size && !stopping_; start += kPieceBytes) {
    if (posix_fadvise(fd.get(), start, kPieceBytes, POSIX_FADV_WILLNEED) != 0) return;
  }
}

}  // namespace warpsmith
