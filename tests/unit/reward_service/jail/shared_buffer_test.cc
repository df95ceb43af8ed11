#include "reward_service/jail/shared_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("shared memory has one size for good, and a descriptor that only reads it") {
  const auto buffer = SharedBuffer::Create(1000);
  REQUIRE(buffer.ok());
  const SharedBuffer& memory = **buffer;
  CHECK(std::all_of(memory.data(), memory.data() + 1000, [](char byte) { return byte == 0; }));
  CHECK(ftruncate(memory.fd(), 1) != 0);
  CHECK(mmap(nullptr, 1000, PROT_WRITE, MAP_SHARED, memory.read_only_fd(), 0) == MAP_FAILED);
}

TEST_CASE("a fill reaches every process that maps the memory") {
  const auto buffer = SharedBuffer::Create(3);
  REQUIRE(buffer.ok());
  (*buffer)->Fill(7);
  char read[4] = {};
  CHECK(pread((*buffer)->read_only_fd(), read, sizeof(read), 0) == 3);
  CHECK(std::all_of(read, read + 3, [](char byte) { return byte == 7; }));
}

}  // namespace
}  // namespace warpsmith
