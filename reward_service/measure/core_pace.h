// How slow a lane's core is beside its last judgements: what shares it with others, unseen, changes that.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_CORE_PACE_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_CORE_PACE_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "reward_service/jail/messages.h"

namespace warpsmith {

// Calls of one measurement: as many as a batch may have, so that it lasts some hundred microseconds.
inline constexpr size_t kPaceCalls = jail::Run::rooms.num_max;

// By what so many calls of an empty Python program take more than of a native one: the work of an interpreter, which
// is what the launches of an eager reference are, too, without the GPU's turn. For the lane's thread.
class CorePace {
 public:
  // What several measurements of one judgement took [us]: their median is one of those to compare with. One alone may
  // be short by chance, for it is a difference.
  void Learn(const std::vector<double>& us);
  // Of one measurement: over what the fastest tenth of the last judgements took, from 1 to 1.6; 1 where nothing is
  // known. Where it was 2, launches of an eager reference took 1.6 times as long (one H100, 16 Xeon cores).
  double Slowness(double us) const;

 private:
  std::deque<double> last_us_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_CORE_PACE_H_
