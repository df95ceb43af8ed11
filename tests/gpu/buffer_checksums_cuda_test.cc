#include "core/model/buffer_checksums_cuda.h"

#include <cuda_runtime_api.h>

#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "core/model/device_memory.h"
#include "core/model/staging_plan.h"
#include "tests/support/catch.h"
#include "tests/support/weights_pattern.h"

namespace warpsmith {
namespace {

struct Weights {
  const ParameterLayout layout{PatternModel("small")};
  const std::vector<int64_t> offsets = BufferOffsets(layout);
  std::vector<uint16_t> bits = Bits(offsets.back());

  static std::vector<uint16_t> Bits(int64_t size) {
    std::vector<uint16_t> bits(size);
    for (int64_t i = 0; i < size; ++i) bits[i] = PatternBits(1, i);
    return bits;
  }
  int64_t bytes() const { return std::ssize(bits) * int64_t{sizeof(uint16_t)}; }
  std::vector<MemoryChecksum> Expected() const {
    std::vector<MemoryChecksum> checksums;
    const std::string_view all(reinterpret_cast<const char*>(bits.data()), static_cast<size_t>(bytes()));
    for (int i = 0; i < layout.num_buffers(); ++i) {
      checksums.push_back(ChecksumOf(all.substr(offsets[i] * 2, (offsets[i + 1] - offsets[i]) * 2)));
    }
    return checksums;
  }
  DeviceMemory OnDevice() const {
    DeviceMemory memory = DeviceMemory::Zeros(bytes()).value();
    REQUIRE(cudaMemcpy(memory.get(), bits.data(), bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
    return memory;
  }
};

}  // namespace

TEST_CASE("each buffer of the layout has the checksum that the host finds") {
  const Weights weights;
  const DeviceMemory memory = weights.OnDevice();
  const auto found = ChecksumBuffers(weights.layout, memory.get(), nullptr, absl::Now() + absl::Seconds(30));
  REQUIRE(found.ok());
  CHECK(*found == weights.Expected());
}

TEST_CASE("buffers are copied before their checksums are made") {
  const Weights weights;
  const DeviceMemory from = weights.OnDevice(), to = DeviceMemory::Zeros(weights.bytes()).value();
  const auto found = ChecksumBuffers(weights.layout, to.get(), from.get(), absl::Now() + absl::Seconds(30));
  REQUIRE(found.ok());
  CHECK(*found == weights.Expected());
  std::vector<uint16_t> copied(weights.bits.size());
  REQUIRE(cudaMemcpy(copied.data(), to.get(), weights.bytes(), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(copied == weights.bits);
}

}  // namespace warpsmith
