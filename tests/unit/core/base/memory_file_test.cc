#include "core/base/memory_file.h"

#include <unistd.h>

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a sealed text is read back whole, and refused over the reader's bound") {
  const std::string text = std::string("a\0b", 3) + std::string(5000, 'x');
  const auto fd = SealedMemoryFile(text);
  REQUIRE(fd.ok());
  CHECK(*ReadMemoryFile(fd->get(), 5003) == text);
  CHECK(*ReadMemoryFile(fd->get(), 5003) == text);  // whatever was read before
  CHECK(ReadMemoryFile(fd->get(), 5002).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(write(fd->get(), "y", 1) < 0);
}

TEST_CASE("an empty text is a text, a closed descriptor is none") {
  const auto fd = SealedMemoryFile("");
  REQUIRE(fd.ok());
  CHECK(ReadMemoryFile(fd->get(), 0)->empty());
  CHECK_FALSE(ReadMemoryFile(-1, 100).ok());
}

}  // namespace
}  // namespace warpsmith
