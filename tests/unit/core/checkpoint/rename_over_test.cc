#include "core/checkpoint/rename_over.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace {

bool can_exchange = true;  // as NFS cannot

}  // namespace

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (can_exchange) {
    return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  }
  errno = EINVAL;
  return -1;
}

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

// A folder with one file.
fs::path MakeFolder(const fs::path& path, const char* content) {
  fs::create_directories(path);
  REQUIRE(WriteFileAtomically(path / "file", content).ok());
  return path;
}

}  // namespace

TEST_CASE("a folder takes a name that is free, another folder's, a file's or a link's, which are gone then") {
  can_exchange = GENERATE(true, false);
  const TemporaryDirectory directory;
  const fs::path place = directory.path() / "place", elsewhere = directory.path() / "elsewhere";
  MakeFolder(elsewhere, "linked");
  const auto take = [&](const char* content) {
    const fs::path from = MakeFolder(directory.path() / "from", content);
    REQUIRE(RenameOver(from, place).ok());
    CHECK(ReadFile(place / "file").value() == content);
    CHECK_FALSE(fs::exists(from));
  };
  take("first");
  take("second");
  fs::remove_all(place);
  REQUIRE(WriteFileAtomically(place, "a file").ok());
  take("third");
  fs::remove_all(place);
  fs::create_directory_symlink(elsewhere, place);
  take("fourth");
  CHECK_FALSE(fs::is_symlink(place));
  CHECK(ReadFile(elsewhere / "file").value() == "linked");
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 2);
  can_exchange = true;
}

TEST_CASE("a folder that cannot be renamed stays where it is") {
  const TemporaryDirectory directory;
  const fs::path from = MakeFolder(directory.path() / "from", "kept");
  CHECK(absl::IsNotFound(RenameOver(from, directory.path() / "missing" / "place")));
  CHECK(ReadFile(from / "file").value() == "kept");
}

}  // namespace warpsmith
