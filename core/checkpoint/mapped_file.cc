#include "core/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

absl::StatusOr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open", path.string());
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return ErrnoStatus("cannot stat", path.string());
  if (!S_ISREG(status.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": is not a file"));
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile({});
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return ErrnoStatus("cannot map", path.string());
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace warpsmith
