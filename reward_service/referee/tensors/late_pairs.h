// Which words of a call's tensors come when its clock starts.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LATE_PAIRS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LATE_PAIRS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "reward_service/referee/tensors/tensor_layout.h"

namespace warpsmith {

// Two words of a call's tensors, by their aligned offsets. In a copy each lies in the other's place until
// TensorStore::GiveLateWords().
struct LatePair {
  static constexpr int64_t kWordBytes = 8;
  int64_t first = 0;
  int64_t second = 0;
};

// One word of each part of an input, and of all parameters together, and for it one of the same tensor, both by lot: no
// part can be worked on sooner, and no value tells which they are. No word is in two pairs. A tensor of one word has
// none, and words of equal values are where they were.
std::vector<LatePair> DrawLatePairs(const TaskLayout& layout, std::mt19937_64& random);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_LATE_PAIRS_H_
