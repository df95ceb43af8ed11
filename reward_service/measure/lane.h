// The cores on which candidates and baselines are timed, undisturbed: with the right to real-time scheduling
// because they preempt whatever else runs there, without it because the service keeps off.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_LANE_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_LANE_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace warpsmith {

class Lane {
 public:
  // Whether this process may schedule in real time (CAP_SYS_NICE, or RLIMIT_RTPRIO). PERMISSION_DENIED.
  static absl::Status CheckRealtime();

  enum class Judge { kOnAllCores, kApart };

  // `cores` not empty. With `realtime`, SCHED_FIFO is used where the right exists. A judge that is apart has the first
  // core to itself, where there are several: it can look for a program's word without a call of the kernel's.
  Lane(std::vector<int> cores, bool realtime, Judge judge = Judge::kOnAllCores);

  // The calling thread becomes the lane's judge: pinned to its cores, above the jails.
  absl::Status Hold() const;
  // Undoes Hold(): the usual priority, on other cores than the lane's where there are some.
  absl::Status Leave() const;
  // The calling thread, and what it will start, leaves the lane's cores, where there are others and where it
  // would be in the way: a lane with real-time priority preempts it, and is idle between timed calls.
  absl::Status StayOut() const;
  // Pins every thread of a process to the lane. Call before code of others runs in it.
  absl::Status Admit(pid_t pid) const;
  // Deals the threads of an admitted process out to the lane's cores and all that this process had at first, at
  // the usual priority: for calls that are not timed. Without real-time priority the latter are those of no lane.
  absl::Status Spread(pid_t pid) const;

  // Gives the lane back for a process that is to end: it does so on other cores, where there are some, at the
  // usual priority.
  absl::Status Dismiss(pid_t pid) const;

  int num_cores_around() const { return static_cast<int>(all_cores_.size()); }  // that Spread() gives
  int num_threads() const { return static_cast<int>(cores_.size()); }
  const std::vector<int>& core_list() const { return cores_; }  // of the jails
  bool realtime() const { return realtime_; }
  std::string cores() const;    // "1" or "2,3", the judge's first
  std::string quality() const;  // "realtime", or "best_effort: <why>"

 private:
  std::vector<int> lane_cores_;
  std::vector<int> judge_cores_;
  std::vector<int> cores_;  // of the jails
  std::vector<int> all_cores_;
  bool realtime_;
  std::string why_not_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_LANE_H_
