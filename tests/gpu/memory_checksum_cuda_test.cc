#include "core/kernels/memory_checksum_cuda.h"

#include <string_view>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

MemoryChecksum OnDevice(const DeviceVector<uint64_t>& words) {
  const DeviceVector<MemoryChecksum> checksum(std::vector<MemoryChecksum>(1));
  REQUIRE(LaunchMemoryChecksum(words.get(), static_cast<int64_t>(words.size() * sizeof(uint64_t)),
                               checksum.get(), nullptr) == cudaSuccess);
  return checksum.Read()[0];
}

std::string_view BytesOf(const std::vector<uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

}  // namespace

TEST_CASE("the device's checksum is the host's at every size") {
  // One vector; around a block and a grid of them; and around all that a grid loads at once.
  for (const int64_t vectors :
       {1, 2, 31, 255, 256, 257, 270335, 270336, 270337, 1081343, 1081344, 1081345, 3000001}) {
    std::vector<uint64_t> words(vectors * 2);
    for (size_t i = 0; i < words.size(); ++i) words[i] = i * 0xD6E8FEB86659FD93;
    INFO(vectors << " vectors");
    CHECK(OnDevice(DeviceVector<uint64_t>(words)) == ChecksumOf(BytesOf(words)));
  }
}

TEST_CASE("one changed bit anywhere changes the device's checksum") {
  std::vector<uint64_t> words(1 << 16);
  for (size_t i = 0; i < words.size(); ++i) words[i] = UniformWord(1, i);
  const MemoryChecksum sound = OnDevice(DeviceVector<uint64_t>(words));
  for (const size_t at : {size_t{0}, size_t{1}, words.size() / 2, words.size() - 1}) {
    words[at] ^= uint64_t{1} << 63;
    CHECK_FALSE(OnDevice(DeviceVector<uint64_t>(words)) == sound);
    words[at] ^= uint64_t{1} << 63;
  }
}

TEST_CASE("bytes that are not of whole vectors have no checksum on a device") {
  CHECK(LaunchMemoryChecksum(nullptr, 8, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchMemoryChecksum(nullptr, -16, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchMemoryChecksum(nullptr, 0, nullptr, nullptr) == cudaSuccess);
}

TEST_CASE("the rate of a checksum") {
  constexpr int64_t kWords = int64_t{256} << 20;
  const DeviceVector<uint64_t> words(std::vector<uint64_t>(kWords, 0x3F803F803F803F80));
  const DeviceVector<MemoryChecksum> checksum(std::vector<MemoryChecksum>(1));
  PrintRate("memory checksum", kWords * sizeof(uint64_t), [&] {
    return LaunchMemoryChecksum(words.get(), kWords * int64_t{sizeof(uint64_t)}, checksum.get(), nullptr);
  });
}

}  // namespace warpsmith
