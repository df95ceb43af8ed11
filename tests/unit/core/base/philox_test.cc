#include "core/base/philox.h"

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Known answers of the authors' kat_vectors, worked out by the compiler.
constexpr PhiloxBlock kBlock = Philox(0, {{0, 0, 0, 0}});
static_assert(kBlock.words[0] == 0x6627e8d5 && kBlock.words[1] == 0xe169c58d);
static_assert(kBlock.words[2] == 0xbc57ac4c && kBlock.words[3] == 0x9b00dbd8);

TEST_CASE("a uniform number of the block function is that of its words") {
  for (const uint64_t key : {uint64_t{0}, uint64_t{17}, ~uint64_t{0}}) {
    for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
      const uint64_t word = UniformWord(key, index);
      CHECK(PhiloxUniform(key, index) == static_cast<double>(word / 2048) / 9007199254740992.0);
      CHECK(PhiloxUniform(key, index) < 1);
    }
  }
  CHECK(PhiloxUniform(1, 0) != PhiloxUniform(2, 0));
}

}  // namespace
}  // namespace warpsmith
