// Group-relative advantages.
#ifndef WARPSMITH_TRAINER_UPDATE_ADVANTAGES_H_
#define WARPSMITH_TRAINER_UPDATE_ADVANTAGES_H_

#include <optional>
#include <vector>

#include "trainer/data/transition.h"

namespace warpsmith {

enum class AdvantageKind {
  kGrpo,    // (R - mean) / (standard deviation + 1e-6); DeepSeekMath, arXiv 2402.03300, section 4.1
  kDrGrpo,  // R - mean; "Understanding R1-Zero-Like Training", arXiv 2503.20783, section 3.2
};

// One for each transition of the group, in order; nothing for one that was not scored.
std::vector<std::optional<double>> ComputeAdvantages(const TransitionGroup& group, AdvantageKind kind);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_ADVANTAGES_H_
