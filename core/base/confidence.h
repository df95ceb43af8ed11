// How sure whatever is estimated is: one confidence for all intervals.
#ifndef WARPSMITH_CORE_BASE_CONFIDENCE_H_
#define WARPSMITH_CORE_BASE_CONFIDENCE_H_

#include <cmath>

namespace warpsmith {

// 95 %, two-sided: so many standard deviations of a normal distribution.
inline constexpr double kNormalQuantile = 1.96;

// The share that lies beyond either end of an interval.
inline double TailShare() { return std::erfc(kNormalQuantile / std::sqrt(2.0)) / 2; }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_CONFIDENCE_H_
