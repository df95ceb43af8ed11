#include "core/model/memory_driver_cuda.h"

#include <cuda_runtime_api.h>

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("addresses are reserved for whole units, and memory comes and goes behind them") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);  // makes the context
  DriverMapping mapping = DriverMapping::Reserve(0, 5, /*shareable=*/false).value();
  CHECK(mapping.bytes >= 5);
  for (int life = 0; life < 2; ++life) {
    REQUIRE(mapping.Create().ok());
    REQUIRE(mapping.Map().ok());
    CHECK(cudaMemset(reinterpret_cast<void*>(mapping.address), 1, mapping.bytes) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    mapping.Unmap();
    mapping.Unmap();
  }
  mapping.FreeAddresses();
  mapping.FreeAddresses();
}

TEST_CASE("the driver's errors say what was wanted") {
  CHECK(MemoryDriverStatus(CUDA_SUCCESS, "cuMemMap", 7).ok());
  const absl::Status exhausted = MemoryDriverStatus(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate", 7);
  CHECK(absl::IsResourceExhausted(exhausted));
  CHECK_THAT(std::string(exhausted.message()), Catch::Contains("cuMemCreate of 7 bytes"));
  CHECK(absl::IsInternal(MemoryDriverStatus(CUDA_ERROR_INVALID_VALUE, "cuMemMap", 7)));
}

}  // namespace warpsmith
