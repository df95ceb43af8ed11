#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kNumRounds = 10;

}  // namespace

std::array<uint32_t, 4> Philox4x32(uint64_t key, std::array<uint32_t, 4> counter) {
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kNumRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

uint64_t UniformWord(uint64_t key, uint64_t index) {
  const auto block =
      Philox4x32(key, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0});
  return (uint64_t{block[1]} << 32) | block[0];
}

double UniformDouble(uint64_t key, uint64_t index) {
  return static_cast<double>(UniformWord(key, index) >> 11) * 0x1p-53;
}

}  // namespace warpsmith
