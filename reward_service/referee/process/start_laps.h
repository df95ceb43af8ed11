// Where the time of a referee's start goes, for its log.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LAPS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LAPS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {

// One thread after the other.
class StartLaps {
 public:
  // What was done since the last lap, or since this was made.
  void Add(const char* what);
  // "8.3 s: GPU 0.5, Torch 5.1"
  std::string Report() const;

 private:
  const absl::Time begin_ = absl::Now();
  absl::Time last_ = begin_;
  std::vector<std::pair<const char*, absl::Duration>> laps_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LAPS_H_
