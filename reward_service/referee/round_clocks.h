// What a GPU's clocks did while candidate and reference were timed, as pure functions of numbers.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_ROUND_CLOCKS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_ROUND_CLOCKS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "reward_service/cuda/clock_reading.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Rounds of a judgement that are timed again because the clocks changed meanwhile, at most, and one of each process. A
// program that can change them has no more rounds taken back: most of those that count still have input sets that are
// new for each judgement.
inline constexpr int kRepeatedRoundsMax = 2;

// Around one round; absent where nobody tells them.
struct RoundClocks {
  std::optional<cuda::ClockReading> before = std::nullopt;
  std::optional<cuda::ClockReading> after = std::nullopt;
};

// Whether they changed during the round by so much that its ratio may be another for it. A time changes by no more than
// the clocks do: while each ends within [0.97, 1.03] of where it began, and went no farther between, two sides that are
// equal are not told from each other. A slowdown that begins or ends is a change by itself; one that is there at both
// ends slows both sides. What comes and goes between the two readings is not seen.
bool ClocksChanged(const RoundClocks& clocks);

// Sets `timing->clocks` from the rounds that count and the number of those that were timed again. Says in
// `timing->quality` during how many that count the clocks changed, and, if `failure` is not OK, why clocks are missing.
void DescribeClocks(const std::vector<RoundClocks>& rounds, int num_repeated, const absl::Status& failure,
                    v1::Timing* timing);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_ROUND_CLOCKS_H_
