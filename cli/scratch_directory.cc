#include "cli/scratch_directory.h"

#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/file.h"

namespace warpsmith {

absl::StatusOr<ScratchDirectory> ScratchDirectory::Create() {
  std::string name = "/tmp/warpsmith.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return ErrnoStatus("cannot make a folder like", name);
  return ScratchDirectory(name);
}

ScratchDirectory::ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace warpsmith
