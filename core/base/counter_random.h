// Random numbers as a pure function of a key and a counter: no state, so any draw can be repeated alone.
//
// Philox 4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC'11), section 3.3.
#ifndef WARPSMITH_CORE_BASE_COUNTER_RANDOM_H_
#define WARPSMITH_CORE_BASE_COUNTER_RANDOM_H_

#include <array>
#include <cstdint>

namespace warpsmith {

// The block of four 32-bit words for `key` at `counter`.
std::array<uint32_t, 4> Philox4x32(uint64_t key, std::array<uint32_t, 4> counter);

// Uniform in [0, 1) with 53 bits, for draw `index` of stream `key`.
double UniformDouble(uint64_t key, uint64_t index);

// Uniform 64-bit word for draw `index` of stream `key`; also used to derive one seed from another.
uint64_t UniformWord(uint64_t key, uint64_t index);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_COUNTER_RANDOM_H_
