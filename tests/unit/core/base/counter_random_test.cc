#include "core/base/counter_random.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("Philox gives the known answers of its authors") {
  // Random123, kat_vectors, philox4x32 10 rounds.
  CHECK(Philox4x32(0, {0, 0, 0, 0}) ==
        std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox4x32(0xffffffffffffffffu, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("uniform doubles lie in [0, 1) with the mean of a uniform distribution") {
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double value = UniformDouble(17, i);
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
  }
  CHECK(sum / 10000 == Approx(0.5).margin(0.01));
}

TEST_CASE("two streams of random words differ") { CHECK(UniformWord(1, 5) != UniformWord(2, 5)); }

}  // namespace warpsmith
