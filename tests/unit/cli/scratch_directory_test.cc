#include "cli/scratch_directory.h"

#include <utility>

#include "core/base/file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("A scratch folder is private, short, and gone with its owner, content and all") {
  std::filesystem::path path;
  {
    absl::StatusOr<ScratchDirectory> scratch = ScratchDirectory::Create();
    REQUIRE(scratch.ok());
    const ScratchDirectory owner = *std::move(scratch);
    path = owner.path();
    CHECK(path.string().size() < 40);
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_all) ==
          std::filesystem::perms::none);
    REQUIRE(WriteFileAtomically(path / "file", "x").ok());
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace warpsmith
