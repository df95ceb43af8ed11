#include "reward_service/referee/tensors/tensor_store.h"

#include <sys/mman.h>

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("memory of the host is what was written to it, and what others see by its descriptor") {
  TensorStore& store = HostStore();
  CHECK_FALSE(store.on_gpu());
  const auto memory = store.Make(100);
  REQUIRE(memory.ok());
  TensorMemory& bytes = **memory;
  CHECK(bytes.num_bytes() == 100);
  bytes.FillAll('a');
  bytes.Fill('b', 10, 5);
  bytes.Write("xyz", 12, 3);
  CHECK(std::string(bytes.Read(8, 8), 8) == "aabbxyza");
  void* const mapped = mmap(nullptr, 100, PROT_READ, MAP_SHARED, bytes.read_only_fd(), 0);
  REQUIRE(mapped != MAP_FAILED);
  CHECK(std::string(static_cast<const char*>(mapped) + 8, 8) == "aabbxyza");
  munmap(mapped, 100);
  CHECK(mmap(nullptr, 100, PROT_WRITE, MAP_SHARED, bytes.read_only_fd(), 0) == MAP_FAILED);
}

TEST_CASE("memory of the host has no handles") {
  char byte = 0;
  CHECK_FALSE(HostStore().ReadForeign(std::string(128, '0'), 0, 1, &byte).ok());
}

TEST_CASE("a program that is stopped has nothing more to do on the host") {
  CHECK(*HostStore().AwaitDone(0) == 0);
  CHECK(HostStore().Health().ok());
}

}  // namespace
}  // namespace warpsmith
