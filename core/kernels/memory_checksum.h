// A checksum of memory that may be made in parts, in any order, on a CPU or a GPU: the contract, and the CPU's form.
//
// The memory is little-endian 64-bit words w[i], the last one filled up with zeros. Word by word
//
//   x = w[i] xor ((i + 1) * kIndexStep)      and then, a >>> 32 being a xor (a >> 32):
//   first  += y,   y = ((x >>> 32) * kFirstFactor) >>> 32
//   second += (y * kSecondFactor) >>> 32
//
// modulo 2^64. Every step is invertible, so that a change within one word is always seen. Changes of several words,
// words in other places and words of other weights cancel in both sums with a chance of about 2^-128. That holds for
// errors of transmission alone: there is no key in a checksum, so it can be forged.
#ifndef WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_H_
#define WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace warpsmith {

struct MemoryChecksum {
  uint64_t first = 0;
  uint64_t second = 0;
};

constexpr bool operator==(const MemoryChecksum& one, const MemoryChecksum& other) {
  return one.first == other.first && one.second == other.second;
}

// Of one word of the memory. The checksum of all is the sum over its words.
constexpr MemoryChecksum ChecksumOfWord(uint64_t word, uint64_t index) {
  constexpr uint64_t kIndexStep = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: no index gives 0 soon
  constexpr uint64_t kFirstFactor = 0xBF58476D1CE4E5B9, kSecondFactor = 0x94D049BB133111EB;  // SplitMix64's
  uint64_t mixed = word ^ ((index + 1) * kIndexStep);
  mixed = (mixed ^ (mixed >> 32)) * kFirstFactor;
  mixed ^= mixed >> 32;
  const uint64_t again = mixed * kSecondFactor;
  return {mixed, again ^ (again >> 32)};
}

// Of two parts together.
constexpr MemoryChecksum SumOf(const MemoryChecksum& one, const MemoryChecksum& other) {
  return {one.first + other.first, one.second + other.second};
}

// Of `bytes`, whose first is that of word `first_word` of the whole. A part that is not the last one is of whole words.
MemoryChecksum ChecksumOf(std::string_view bytes, uint64_t first_word = 0);

// 32 hexadecimal digits, as manifests have them.
std::string ToHex(const MemoryChecksum& checksum);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_H_
