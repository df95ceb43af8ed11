// The block function behind counter_random.h, where a device's code can call it too: constexpr, C++17, no library.
#ifndef WARPSMITH_CORE_BASE_PHILOX_H_
#define WARPSMITH_CORE_BASE_PHILOX_H_

#include <cstdint>

namespace warpsmith {

struct PhiloxBlock {
  uint32_t words[4];
};

// Philox 4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC'11), section 3.3.
constexpr PhiloxBlock Philox(uint64_t key, PhiloxBlock counter) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kNumRounds = 10;
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kNumRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter.words[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter.words[2];
    counter = {
        {static_cast<uint32_t>(product1 >> 32) ^ counter.words[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ counter.words[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

// UniformDouble of counter_random.h: the first two words of the block at counter `index`, 53 bits of them.
constexpr double PhiloxUniform(uint64_t key, uint64_t index) {
  const PhiloxBlock block =
      Philox(key, {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0}});
  const uint64_t word = (uint64_t{block.words[1]} << 32) | block.words[0];
  return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_PHILOX_H_
