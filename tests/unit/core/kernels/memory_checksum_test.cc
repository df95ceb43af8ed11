#include "core/kernels/memory_checksum.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string RandomBytes(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(UniformWord(seed, i));
  return bytes;
}

}  // namespace

TEST_CASE("the checksum of words is what its formula says") {
  CHECK(ToHex(ChecksumOf("")) == std::string(32, '0'));
  // Worked out apart from this code, with integers of any size.
  CHECK(ToHex(ChecksumOf(std::string(8, '\0'))) == "aa1edc3c0c8529705c76a454c81bdd84");
  CHECK(ToHex(ChecksumOf("0123456789abcdef")) == "2ce9bc59ff4e9748ed4a9d6e1dbc42e3");
}

TEST_CASE("a last word is filled up with zeros") {
  const std::string bytes = RandomBytes(29, 1);
  CHECK(ChecksumOf(bytes) == ChecksumOf(bytes + std::string(3, '\0')));
}

TEST_CASE("parts add up to the whole in any order") {
  const std::string bytes = RandomBytes(4096 + 5, 2);
  MemoryChecksum sum;
  for (const auto& [begin, size] : {std::pair<size_t, size_t>{1024, 8}, {1032, 5000}, {0, 1024}}) {
    sum = SumOf(sum, ChecksumOf(std::string_view(bytes).substr(begin, size), begin / 8));
  }
  CHECK(sum == ChecksumOf(bytes));
}

TEST_CASE("every flip of one bit changes both sums") {
  std::string bytes = RandomBytes(64, 3);
  const MemoryChecksum sound = ChecksumOf(bytes);
  for (int bit = 0; bit < 64 * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const MemoryChecksum flipped = ChecksumOf(bytes);
    INFO("bit " << bit);
    CHECK((flipped.first != sound.first && flipped.second != sound.second));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}

TEST_CASE("no two flips of bits at the same place of two words cancel in either sum") {
  for (const bool zeros : {true, false}) {
    const std::string sound = zeros ? std::string(16 * 8, '\0') : RandomBytes(16 * 8, 4);
    const MemoryChecksum checksum = ChecksumOf(sound);
    for (int bit = 0; bit < 64; ++bit) {
      for (int word = 1; word < 16; ++word) {
        std::string bytes = sound;
        for (const int at : {bit, word * 64 + bit})
          bytes[at / 8] = static_cast<char>(bytes[at / 8] ^ (1 << at % 8));
        const MemoryChecksum changed = ChecksumOf(bytes);
        INFO("bit " << bit << " of words 0 and " << word);
        CHECK((changed.first != checksum.first && changed.second != checksum.second));
      }
    }
  }
}

TEST_CASE("words that change places, blocks of zeros and shifts are seen") {
  const std::string sound = RandomBytes(4096, 5);
  const MemoryChecksum checksum = ChecksumOf(sound);
  std::string swapped = sound;
  std::swap_ranges(swapped.begin(), swapped.begin() + 1024, swapped.begin() + 2048);
  CHECK_FALSE(ChecksumOf(swapped) == checksum);
  std::string zeroed = sound;
  std::fill_n(zeroed.begin() + 512, 512, '\0');
  CHECK_FALSE(ChecksumOf(zeroed) == checksum);
  CHECK_FALSE(ChecksumOf(sound.substr(8) + sound.substr(0, 8)) == checksum);
}

TEST_CASE("the low 16 bits of both sums are spread evenly over blocks that differ in one word") {
  constexpr int kBlocks = 1 << 16, kBuckets = 256;
  std::vector<int> first(kBuckets), second(kBuckets);
  for (int i = 0; i < kBlocks; ++i) {
    const MemoryChecksum checksum = ChecksumOfWord(static_cast<uint64_t>(i) << 48, 7);
    ++first[checksum.first % kBuckets];
    ++second[checksum.second % kBuckets];
  }
  for (const std::vector<int>& counts : {first, second}) {  // 256 expected, deviation 16
    CHECK(*std::min_element(counts.begin(), counts.end()) > 256 - 6 * 16);
    CHECK(*std::max_element(counts.begin(), counts.end()) < 256 + 6 * 16);
  }
}

}  // namespace warpsmith
