#include "trainer/update/group_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace warpsmith {

GroupStatistics ComputeGroupStatistics(const TransitionGroup& group) {
  std::vector<double> rewards;
  for (const Transition& transition : group.transitions) {
    if (transition.grade.scored()) rewards.push_back(*transition.grade.reward);
  }
  GroupStatistics statistics{.num_scored = static_cast<int>(rewards.size())};
  if (rewards.empty()) return statistics;

  for (const double reward : rewards) statistics.mean += reward;
  statistics.mean /= static_cast<double>(rewards.size());
  double squares = 0;
  for (const double reward : rewards) squares += (reward - statistics.mean) * (reward - statistics.mean);
  if (rewards.size() > 1)
    statistics.standard_deviation = std::sqrt(squares / static_cast<double>(rewards.size() - 1));
  const auto [smallest, largest] = std::minmax_element(rewards.begin(), rewards.end());
  statistics.spread = *largest - *smallest;
  return statistics;
}

void ShareGrades(TransitionGroup& group) {
  std::map<std::string, const Grade*> first_grades;
  for (const Transition& transition : group.transitions) {
    const Grade& grade = transition.grade;
    if (grade.scored() && !grade.source_sha256.empty()) first_grades.try_emplace(grade.source_sha256, &grade);
  }
  for (Transition& transition : group.transitions) {
    const auto found = first_grades.find(transition.grade.source_sha256);
    if (found != first_grades.end() && found->second != &transition.grade) transition.grade = *found->second;
  }
}

int CountMalformed(const TransitionGroup& group) {
  return static_cast<int>(
      std::count_if(group.transitions.begin(), group.transitions.end(),
                    [](const Transition& transition) { return !transition.malformed.empty(); }));
}

bool CountsAsEqual(const GroupStatistics& statistics, double spread_min) {
  return statistics.num_scored < 2 || statistics.spread == 0 || statistics.spread < spread_min;
}

}  // namespace warpsmith
