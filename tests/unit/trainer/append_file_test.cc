#include "trainer/append_file.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("what was written after a checkpoint is cut off and written again") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  {
    auto file = AppendFile::Open(path, 0);
    REQUIRE(file.ok());
    REQUIRE(file->Append("one\n").ok());
    REQUIRE(file->Append("two\nhalf of thr").ok());
    CHECK(file->size() == 19);
  }
  auto file = AppendFile::Open(path, 4);
  REQUIRE(file.ok());
  REQUIRE(file->Append("2\n").ok());
  CHECK(ReadFile(path).value() == "one\n2\n");
}

TEST_CASE("a file shorter than the checkpoint saw it is refused") {
  TemporaryDirectory directory;
  CHECK(absl::IsInvalidArgument(AppendFile::Open(directory.path() / "log", 1).status()));
}

}  // namespace warpsmith
