// How long what waits will take, judged by what was done of late.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_WAITING_BACKLOG_TIME_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_WAITING_BACKLOG_TIME_H_

#include "absl/time/time.h"

namespace warpsmith {

// Not thread-safe. Times given to it must not go backwards; one that does counts as the latest before it.
//
// What was done counts half as much after each kHalfLife, so that the estimate follows a change of the load
// within minutes. Before anything was done a request counts as kRequestTime of a lane.
class BacklogTime {
 public:
  static constexpr absl::Duration kMin = absl::Milliseconds(200);
  static constexpr absl::Duration kMax = absl::Seconds(30);
  static constexpr absl::Duration kHalfLife = absl::Seconds(60);
  static constexpr absl::Duration kRequestTime = absl::Milliseconds(500);

  BacklogTime(int num_compile_workers, int num_lanes)
      : num_compile_workers_(num_compile_workers), num_lanes_(num_lanes) {}

  // Work of one compile worker, or one lane, whoever it was for.
  void CountCompiling(absl::Duration work, absl::Time now);
  void CountJudging(absl::Duration work, absl::Time now);
  // Requests that this work has answered: several where they shared a measurement.
  void CountAnswered(int num_requests, absl::Time now);

  // Time in which `num_requests` that wait are answered, in [kMin, kMax]: their number times the mean work of
  // a request, divided by those who do it, at the stage that takes longer.
  absl::Duration Estimate(int num_requests, absl::Time now) const;

 private:
  // Sums that fade.
  struct Recent {
    double compile_seconds = 0;
    double judge_seconds = 0;
    double num_answered = 0;
  };

  Recent At(absl::Time now) const;
  void Fade(absl::Time now);

  const int num_compile_workers_;
  const int num_lanes_;
  Recent recent_;
  absl::Time as_of_ = absl::InfinitePast();
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_WAITING_BACKLOG_TIME_H_
