#include "trainer/data/seeds.h"

#include "core/base/counter_random.h"

namespace warpsmith {

uint64_t DeriveSeed(uint64_t run_seed, SeedPurpose purpose, uint64_t index) {
  return UniformWord(UniformWord(run_seed, static_cast<uint64_t>(purpose)), index);
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace warpsmith
