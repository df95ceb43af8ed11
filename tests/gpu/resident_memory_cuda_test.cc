#include "core/model/resident_memory_cuda.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/gpu/free_memory.h"
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
  const std::unique_ptr<ResidentMemory> memory = ResidentMemory::Reserve(0, kBytes).value();
  const std::optional<int64_t> freed =
      BytesFreedBy([&] { REQUIRE(memory->Allocate().ok()); }, [&] { memory->Free(); });
  REQUIRE(freed.has_value());
  CHECK(-*freed >= kBytes);
  size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  const std::unique_ptr<ResidentMemory> large =
      ResidentMemory::Reserve(0, static_cast<int64_t>(total) * 2).value();
  CHECK(large->Allocate().code() == absl::StatusCode::kResourceExhausted);
  CHECK(!large->resident());
}

}  // namespace warpsmith
