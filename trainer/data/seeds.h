// Every random number of a run follows from its seed and a purpose, so nothing random needs saving.
#ifndef WARPSMITH_TRAINER_DATA_SEEDS_H_
#define WARPSMITH_TRAINER_DATA_SEEDS_H_

#include <cstdint>
#include <string_view>

namespace warpsmith {

// What a stream of random numbers is for.
enum class SeedPurpose : uint64_t {
  kInitialWeights = 1,
  kTaskOrder = 2,
  kRollout = 3,
  kFeedbackChoice = 4,
  kColdStartOrder = 5,
  kEvaluation = 6,
  kBootstrap = 7,
  kPermutation = 8,
  kOptimiseOrder = 9,
};

// Seed number `index` of a purpose.
uint64_t DeriveSeed(uint64_t run_seed, SeedPurpose purpose, uint64_t index = 0);

// FNV-1a, 64 bits: a number for a name, the same on every machine.
uint64_t HashOf(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_SEEDS_H_
