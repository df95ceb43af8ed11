#include "core/kernels/memory_checksum.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

namespace warpsmith {

static_assert(std::endian::native == std::endian::little);

MemoryChecksum ChecksumOf(std::string_view bytes, uint64_t first_word) {
  constexpr size_t kWordBytes = sizeof(uint64_t);
  MemoryChecksum sum;
  const size_t whole = bytes.size() / kWordBytes;
  for (size_t i = 0; i < whole; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * kWordBytes, kWordBytes);
    sum = SumOf(sum, ChecksumOfWord(word, first_word + i));
  }
  if (const size_t rest = bytes.size() % kWordBytes; rest > 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + whole * kWordBytes, rest);
    sum = SumOf(sum, ChecksumOfWord(word, first_word + whole));
  }
  return sum;
}

std::string ToHex(const MemoryChecksum& checksum) {
  return absl::StrFormat("%016x%016x", checksum.first, checksum.second);
}

}  // namespace warpsmith
