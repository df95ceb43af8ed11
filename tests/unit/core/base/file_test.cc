#include "core/base/file.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("a file written atomically reads back, and leaves no temporary file") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "a.txt";
  REQUIRE(WriteFileAtomically(path, "old").ok());
  REQUIRE(WriteFileAtomically(path, "new").ok());
  CHECK(ReadFile(path).value() == "new");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a file that is not there is NOT_FOUND and named") {
  const auto content = ReadFile("/nowhere/at/all");
  CHECK(absl::IsNotFound(content.status()));
  CHECK(content.status().message().find("/nowhere/at/all") != absl::string_view::npos);
}

TEST_CASE("a file over the limit is refused") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "big";
  REQUIRE(WriteFileAtomically(path, std::string(100, 'x')).ok());
  CHECK(absl::IsInvalidArgument(ReadFile(path, 99).status()));
  CHECK(ReadFile(path, 100).ok());
}

TEST_CASE("writing to a full disk says so") {
  // /dev/full accepts no byte; it cannot be renamed over, so only the error's kind is of interest.
  errno = ENOSPC;
  CHECK(absl::IsResourceExhausted(ErrnoStatus("cannot write", "x")));
}

}  // namespace warpsmith
