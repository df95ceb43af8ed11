#include "core/model/shared_memory_cuda.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("what is written at one mapping is read at another, also when the first is gone") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);  // makes the context
  constexpr int64_t kBytes = 3'000'000;
  auto first = SharedMemory::Allocate(0, kBytes).value();
  const UniqueFd descriptor = first->Export().value();
  CHECK((fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC) != 0);
  const auto second = SharedMemory::Map(0, descriptor, kBytes);
  INFO(second.status().message());
  REQUIRE(second.ok());
  CHECK((*second)->get() != first->get());
  REQUIRE(cudaMemset(first->get(), 7, kBytes) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  first.reset();
  std::vector<char> found(kBytes);
  REQUIRE(cudaMemcpy(found.data(), (*second)->get(), kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(found == std::vector<char>(kBytes, 7));
}

TEST_CASE("more memory than was taken is not mapped, nor what is no memory") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  const auto memory = SharedMemory::Allocate(0, 1000).value();
  CHECK_FALSE(SharedMemory::Map(0, memory->Export().value(), int64_t{1} << 30).ok());
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  CHECK_FALSE(SharedMemory::Map(0, writer, 1000).ok());
}

}  // namespace warpsmith
