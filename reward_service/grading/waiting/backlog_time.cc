#include "reward_service/grading/waiting/backlog_time.h"

#include <algorithm>
#include <cmath>

namespace warpsmith {

void BacklogTime::CountCompiling(absl::Duration work, absl::Time now) {
  Fade(now);
  recent_.compile_seconds += absl::ToDoubleSeconds(work);
}

void BacklogTime::CountJudging(absl::Duration work, absl::Time now) {
  Fade(now);
  recent_.judge_seconds += absl::ToDoubleSeconds(work);
}

void BacklogTime::CountAnswered(int num_requests, absl::Time now) {
  Fade(now);
  recent_.num_answered += num_requests;
}

absl::Duration BacklogTime::Estimate(int num_requests, absl::Time now) const {
  const Recent recent = At(now);
  // One request more than was seen: what nobody has measured yet, and what all else fades to.
  const double num_answered = recent.num_answered + 1.0;
  const double compiling = recent.compile_seconds / num_answered / num_compile_workers_;
  const double judging =
      (recent.judge_seconds + absl::ToDoubleSeconds(kRequestTime)) / num_answered / num_lanes_;
  return std::clamp(absl::Seconds(num_requests * std::max(compiling, judging)), kMin, kMax);
}

BacklogTime::Recent BacklogTime::At(absl::Time now) const {
  const absl::Duration age = std::max(now - as_of_, absl::ZeroDuration());
  const double weight = std::exp2(-absl::FDivDuration(age, kHalfLife));
  return {recent_.compile_seconds * weight, recent_.judge_seconds * weight, recent_.num_answered * weight};
}

void BacklogTime::Fade(absl::Time now) {
  recent_ = At(now);
  as_of_ = std::max(as_of_, now);
}

}  // namespace warpsmith
