// What the path to programs costs: the part of a measured time that is no program's.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PATH_COSTS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PATH_COSTS_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "reward_service/referee/timed_side.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {

struct PathOptions {
  // Whether it is measured before each round: on a GPU it takes longer for a process that has waited.
  bool cold = false;
  // Whether what a runner does between the calls of a batch is taken off. Python's takes long, may hide behind a GPU's
  // work, and of a program's own process nobody knows: then it stays on both clocks.
  bool takes_between_off = true;
  // Says that a part of what is taken off a candidate is work of its own process, which could leave it out.
  bool may_be_cut_short = false;
};

// A batch with the work that its calls have left behind their answer [us], which is on the clock. A GPU takes some
// microseconds longer to change hands after a program that has used it, up to 30 after one that has for some
// milliseconds (one H100). As much is forgiven, 8 us or a fiftieth of the batch, 30 us at most, and that is what a
// program can gain by working after its answer: less than a speed-up is told from 1 by.
double WithWorkAfter(const BatchTime& batch, const EmptyCall& empty);
// The same of a call that is one of many, without its path: their median is known better than each.
double SingleWithoutPath(const BatchTime& batch, const EmptyCall& path);

// Of one judgement.
class PathCosts {
 public:
  // `device` outlives it.
  PathCosts(TimingDevice* device, PathOptions options) : device_(device), options_(options) {}

  // Of many calls in a row, before each process. Where the path is measured cold, once, to tell how long a batch should
  // be, and each time what the task's memory adds.
  absl::Status MeasureCall();
  // Where it is measured cold, of one batch of so many calls, as it comes: for `round` too, where that is given.
  absl::Status MeasureBatch(size_t num_calls, RoundPath* round = nullptr);

  // To be taken off what was measured of a batch. After MeasureCall(), and of more than one call after MeasureBatch().
  // Of a round what was measured for it, else the median of all.
  EmptyCall OfReference(const BatchTime& batch, const RoundPath& round = {}) const;
  EmptyCall OfCandidate(size_t num_calls, const RoundPath& round = {}) const;
  // What each call of a batch itself took [us]: of the reference, where its process tells that, by its steady time.
  double UsOfReference(const BatchTime& batch, const RoundPath& round = {}) const;
  double UsOfCandidate(const BatchTime& batch, const RoundPath& round) const;
  // Of the reference's, with all that its runner does between the calls.
  double AllOfReference(size_t num_calls, const RoundPath& round) const {
    return Of(num_calls, round).reference.us;
  }

 private:
  Overhead Of(size_t num_calls, const RoundPath& round) const;
  // What the reference's runner added between the calls, as far as it is taken off.
  double BetweenCalls(const BatchTime& batch, const RoundPath& round) const;

  TimingDevice* const device_;
  const PathOptions options_;
  // Of a call, the least so far: what a busy moment adds must not be taken off the calls of quiet ones.
  std::optional<Overhead> least_;
  std::optional<EmptyCall>
      memory_;  // likewise: once in 21 judgements on an H100 it was measured 1 ms too long
  std::map<size_t, std::vector<Overhead>> cold_;  // by calls of a batch
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PATH_COSTS_H_
