#include "reward_service/jail/file_identities.h"

#include <filesystem>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("a file is the same under two names, and a copy is another") {
  const TemporaryDirectory folder;
  const std::string one = folder.path() / "one", other = folder.path() / "other",
                    copy = folder.path() / "copy";
  REQUIRE(WriteFileAtomically(one, "content").ok());
  std::filesystem::create_hard_link(one, other);
  std::filesystem::copy_file(one, copy);
  const FileIdentities files({one, folder.path() / "missing"});
  CHECK(files.Have(one));
  CHECK(files.Have(other));
  CHECK_FALSE(files.Have(copy));
  CHECK_FALSE(files.Have(folder.path() / "missing"));
  CHECK_FALSE(FileIdentities({}).Have(one));
}

}  // namespace
}  // namespace warpsmith
