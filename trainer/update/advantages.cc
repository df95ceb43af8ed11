#include "trainer/update/advantages.h"

#include "trainer/update/group_statistics.h"

namespace warpsmith {

std::vector<std::optional<double>> ComputeAdvantages(const TransitionGroup& group, AdvantageKind kind) {
  constexpr double kEpsilon = 1e-6;
  const GroupStatistics statistics = ComputeGroupStatistics(group);
  const double scale = kind == AdvantageKind::kGrpo ? 1.0 / (statistics.standard_deviation + kEpsilon) : 1.0;
  std::vector<std::optional<double>> advantages;
  for (const Transition& transition : group.transitions) {
    const std::optional<double>& reward = transition.grade.reward;
    advantages.push_back(reward.has_value() ? std::optional((*reward - statistics.mean) * scale)
                                            : std::nullopt);
  }
  return advantages;
}

}  // namespace warpsmith
