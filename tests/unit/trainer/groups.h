// Groups made by hand for tests.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_GROUPS_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_GROUPS_H_

#include <optional>
#include <string>
#include <vector>

#include "trainer/data/transition.h"

namespace warpsmith {

inline Grade GradeOf(std::optional<double> reward, const std::string& sha256 = "") {
  Grade grade;
  grade.verdict = reward.has_value() ? Verdict::kCorrect : Verdict::kUnscorable;
  grade.reward = reward;
  grade.compiled = reward.has_value();
  grade.source = "source of " + sha256;
  grade.source_sha256 = sha256;
  grade.feedback = {.finding = "scalar code", .evidence = "none", .advice = 8};
  return grade;
}

// A skill-1 group with these rewards in order; nothing: UNSCORABLE.
inline TransitionGroup GroupOf(const std::vector<std::optional<double>>& rewards,
                               const std::string& id = "task") {
  TransitionGroup group;
  group.task.id = id;
  for (const auto& reward : rewards) {
    Transition& transition = group.transitions.emplace_back();
    transition.sample_index = static_cast<int>(group.transitions.size()) - 1;
    transition.grade = GradeOf(reward);
  }
  return group;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_GROUPS_H_
