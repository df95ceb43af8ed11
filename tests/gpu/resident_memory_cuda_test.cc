#include "core/model/resident_memory_cuda.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("memory that is given back and taken again is zero at the same address") {
  constexpr int64_t kBytes = (int64_t{8} << 20) + 5;
  REQUIRE(cudaFree(nullptr) == cudaSuccess);  // makes the context
  const absl::StatusOr<std::unique_ptr<ResidentMemory>> memory = ResidentMemory::Reserve(0, kBytes);
  INFO(memory.status().message());
  REQUIRE(memory.ok());
  std::byte* const address = (*memory)->get();
  CHECK(!(*memory)->resident());
  for (int life = 0; life < 3; ++life) {
    REQUIRE((*memory)->Allocate().ok());
    REQUIRE((*memory)->Allocate().ok());
    CHECK((*memory)->resident());
    CHECK((*memory)->get() == address);
    std::vector<char> found(kBytes, 1);
    REQUIRE(cudaMemcpy(found.data(), address, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(found == std::vector<char>(kBytes, 0));
    REQUIRE(cudaMemset(address, 5, kBytes) == cudaSuccess);
    (*memory)->Free();
    (*memory)->Free();
    CHECK(!(*memory)->resident());
  }
}

TEST_CASE("what is given back is free to others, and more than there is exhausts") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  constexpr int64_t kBytes = int64_t{1} << 30;
  size_t before = 0, during = 0, after = 0, total = 0;
  const std::unique_ptr<ResidentMemory> memory = ResidentMemory::Reserve(0, kBytes).value();
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  REQUIRE(memory->Allocate().ok());
  REQUIRE(cudaMemGetInfo(&during, &total) == cudaSuccess);
  memory->Free();
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(static_cast<int64_t>(before - during) >= kBytes);
  CHECK(static_cast<int64_t>(after - during) >= kBytes);
  const std::unique_ptr<ResidentMemory> large =
      ResidentMemory::Reserve(0, static_cast<int64_t>(total) * 2).value();
  CHECK(large->Allocate().code() == absl::StatusCode::kResourceExhausted);
  CHECK(!large->resident());
}

}  // namespace warpsmith
