#include "core/kernels/bfloat16.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("rounding to bfloat16 goes to the nearest, and ties to even") {
  CHECK(RoundToBfloat16(1.0f) == 1.0f);
  CHECK(RoundToBfloat16(1.0f + 0x1p-8f) == 1.0f);                 // a tie, 1 is even
  CHECK(RoundToBfloat16(1.0f + 0x3p-8f) == 1.0f + 0x1p-6f);       // a tie, 1 + 2^-7 is odd
  CHECK(RoundToBfloat16(1.0f + 0x1.01p-8f) == 1.0f + 0x1p-7f);    // just above a tie
  CHECK(RoundToBfloat16(-1.0f - 0x1.01p-8f) == -1.0f - 0x1p-7f);  // likewise below zero
  CHECK(RoundToBfloat16(0x1.ffp-127f) == 0x1p-126f);              // up into the normal numbers
  CHECK(std::signbit(RoundToBfloat16(-0.0f)));
}

TEST_CASE("what bfloat16 cannot hold becomes infinity, and a NaN stays one") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(RoundToBfloat16(infinity) == infinity);
  CHECK(RoundToBfloat16(std::numeric_limits<float>::max()) == infinity);
  CHECK(std::isnan(RoundToBfloat16(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(RoundToBfloat16(-std::numeric_limits<float>::signaling_NaN())));
}

TEST_CASE("every bfloat16 comes back as it was") {
  int different = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = FloatOfBfloat16(static_cast<uint16_t>(bits));
    different += !std::isnan(value) && Bfloat16Bits(value) != bits;
  }
  CHECK(different == 0);
}

}  // namespace
}  // namespace warpsmith
