// Rewards of a group and what follows from them.
#ifndef WARPSMITH_TRAINER_UPDATE_GROUP_STATISTICS_H_
#define WARPSMITH_TRAINER_UPDATE_GROUP_STATISTICS_H_

#include <vector>

#include "trainer/data/transition.h"

namespace warpsmith {

struct GroupStatistics {
  int num_scored = 0;
  double mean = 0;
  double standard_deviation = 0;  // of the sample (n - 1); 0 below two
  double spread = 0;              // largest minus smallest
};

// Over the scored transitions alone: UNSCORABLE and INVALID_TASK are nobody's fault and count nowhere.
GroupStatistics ComputeGroupStatistics(const TransitionGroup& group);

// Gives answers with the same normalised source the grade of the first scored one, so that timing noise never
// tells equal programs apart, and a program whose second grading failed keeps its grade.
void ShareGrades(TransitionGroup& group);

// Transitions that were dropped where they arrived.
int CountMalformed(const TransitionGroup& group);

// Returns whether the group says nothing: fewer than two scored answers, equal rewards, or rewards within `spread_min`
// of each other.
bool CountsAsEqual(const GroupStatistics& statistics, double spread_min);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_GROUP_STATISTICS_H_
