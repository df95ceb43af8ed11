// The random weights of a run that starts from no checkpoint.
#ifndef WARPSMITH_CORE_MODEL_INITIAL_SEED_H_
#define WARPSMITH_CORE_MODEL_INITIAL_SEED_H_

#include <cstdint>

namespace warpsmith {

// All processes of a run begin with the same weights, each by itself: Parameters::InitRandom.
inline constexpr uint64_t kInitialSeed = 1;

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_INITIAL_SEED_H_
