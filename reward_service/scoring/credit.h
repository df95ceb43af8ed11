// How much of a speed-up the candidate's own code earned.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_

#include <string>

#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// Shares of the candidate's own work, where it had libraries: from the first on all of its speed-up counts,
// from the second on no more than the reference's time.
constexpr double kOwnShareForCredit = 0.9;
constexpr double kOwnShareMin = 0.05;

// With fewer samples, what a profile shows of vectors and threads is not used.
constexpr int kProfileSamplesMin = 20;

enum class CreditRule {
  kFull,                // the whole speed-up counts
  kNotDistinguishable,  // counts as exactly 1
  kFixedParameters,     // parameters cannot be set after construction: counts as 0
  kShared,     // libraries did a part, or too few samples tell whose work it was: counts as at most 1
  kDelegated,  // next to nothing is the candidate's own work: counts as 0
  kHack,       // and libraries alone explain the answer: verdict HACK
};

struct Credit {
  CreditRule rule = CreditRule::kFull;
  double speedup = 0.0;
  // The measured condition in words, e.g. "own code 3 % of 812 samples, torch 97 %".
  std::string condition;
};

// Bounds of a share that was seen in `num_samples` samples, 95 % (Wilson 1927, equation 4); 0 and 1 for none.
struct ShareBounds {
  double low = 0.0;
  double high = 1.0;
};
ShareBounds BoundsOf(double share, int num_samples);

// So many samples decide whose work a program did: with none of them its own, its share is below kOwnShareMin.
int NumDecidingSamples();

// The credited speed-up of a CORRECT candidate. Where it ran with the libraries withheld, all work was its
// own. Elsewhere the samples decide, all but those of an empty call's path: own is what ran in code compiled
// from its source, in libc and libm that this code called, in the kernel on its behalf, and in libraries that
// Task.allowed_libraries names ("torch", "blas"). What is not known to be own is not. A task that names both leaves
// nothing to decide, with samples or, as on a GPU, without.
Credit ComputeCredit(const v1::Timing& timing, const v1::Profile& profile, const v1::Task& task);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
