#include "core/model/handles_cuda.h"

#include <string>
#include <vector>

#include "core/model/device_memory.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("memory of device and host is zero when it is taken") {
  constexpr size_t kBytes = 1000;
  const DeviceMemory device = DeviceMemory::Zeros(kBytes).value();
  const PinnedBlock host = AllocatePinned(kBytes).value();
  std::vector<std::byte> read(kBytes, std::byte{7});
  REQUIRE(cudaMemcpy(read.data(), device.get(), kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(read == std::vector<std::byte>(kBytes));
  CHECK(std::vector<std::byte>(host.get(), host.get() + kBytes) == std::vector<std::byte>(kBytes));
  CHECK(CreateStream().ok());
  CHECK(CreateEvent().ok());
}

TEST_CASE("memory that no GPU has is refused with CUDA's words, and the next call works") {
  const absl::Status status = DeviceMemory::Zeros(size_t{1} << 50).status();
  CHECK(absl::IsResourceExhausted(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("1125899906842624") && Catch::Contains("out of memory"));
  CHECK(DeviceMemory::Zeros(16).ok());
}

}  // namespace warpsmith
