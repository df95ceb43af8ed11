// How much of a speed-up the candidate's own code earned.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_

#include <string>

#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// First guesses, to be calibrated on honest answers.
constexpr int kProfileSamplesMin = 20;
constexpr double kHackShareMax = 0.05;
constexpr double kCreditedShareMin = 0.50;
// A part of the work that is a library's, and takes this much of the reference's time: on an AMD EPYC all of it took
// 0.89 to 0.99 (less than 1 where what ran before has warmed the caches), an honest copy of inputs that the reference
// reads four times 0.61 to 0.75.
constexpr double kPaddedShareMin = 0.1;
constexpr double kPaddedWorkMin = 0.80;
// Calls in which libraries do all of the work, among others: which calls are timed, the candidate may guess.
constexpr double kDelegatedCallShareMin = 0.07;
// Watched calls that took much longer than timed ones.
constexpr double kSlowCallShareMin = 0.5;
// Of a small task, where asking for memory is work to be seen: half of the reference's, as elsewhere.
constexpr double kSmallLibraryWorkMax = 0.5;

enum class CreditRule {
  kFull,                // the whole speed-up counts
  kNotDistinguishable,  // counts as exactly 1
  kFixedParameters,     // parameters cannot be set after construction: counts as 0
  kDelegated,           // half or more of the work, or what takes most of the reference's time, is a
                        // library's that the task does not allow: counts as 0
  kOtherCalls,          // most watched calls were slower than any sampling makes the timed ones: what
                        // these do is not known: counts as 0
  kHack,                // nearly all of the work is somebody else's: verdict HACK
};

struct Credit {
  CreditRule rule = CreditRule::kFull;
  double speedup = 0.0;
  // The measured condition in words, e.g. "own code 3 % of 812 samples, torch 97 %".
  std::string condition;
};

// Samples in libraries that the task does not allow, of those that are known to be somebody's; 0 to 1.
double ForeignShare(const v1::Profile& profile, const v1::Task& task);

// The credited speed-up of a CORRECT candidate. Work counts as the candidate's own where it runs in code that
// was compiled from its source, in libc and libm that this code called, or in the kernel on its behalf;
// LibTorch's and BLAS's shares are others' work unless Task.allowed_libraries names them ("torch", "blas").
// With fewer than kProfileSamplesMin samples the shares are not used.
Credit ComputeCredit(const v1::Timing& timing, const v1::Profile& profile, const v1::Task& task);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
