#include "trainer/run_folder/append_file.h"

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

TEST_CASE("a file shorter than the checkpoint saw it goes on after its last whole line") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  for (const auto& [left, kept] :
       {std::pair("", ""), {"half", ""}, {"one\n", "one\n"}, {"one\nhalf", "one\n"}}) {
    REQUIRE(WriteFileAtomically(path, left).ok());
    auto file = AppendFile::Open(path, 100);
    REQUIRE(file.ok());
    CHECK(file->size() == static_cast<int64_t>(std::string(kept).size()));
    REQUIRE(file->Append("next\n").ok());
    CHECK(ReadFile(path).value() == std::string(kept) + "next\n");
  }
}

TEST_CASE("a file that is gone begins again, and syncs") {
  TemporaryDirectory directory;
  auto file = AppendFile::Open(directory.path() / "log", 1);
  REQUIRE(file.ok());
  CHECK(file->size() == 0);
  CHECK(file->Sync().ok());
}

}  // namespace warpsmith
