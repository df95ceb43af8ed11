#include "core/base/counter_random.h"

#include "core/base/philox.h"

namespace warpsmith {

std::array<uint32_t, 4> Philox4x32(uint64_t key, std::array<uint32_t, 4> counter) {
  const PhiloxBlock block = Philox(key, {{counter[0], counter[1], counter[2], counter[3]}});
  return {block.words[0], block.words[1], block.words[2], block.words[3]};
}

uint64_t UniformWord(uint64_t key, uint64_t index) {
  const auto block =
      Philox4x32(key, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0});
  return (uint64_t{block[1]} << 32) | block[0];
}

double UniformDouble(uint64_t key, uint64_t index) { return PhiloxUniform(key, index); }

}  // namespace warpsmith
