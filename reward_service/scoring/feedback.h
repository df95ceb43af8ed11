// One finding, its evidence, one advice: what a Coder is told about its program.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_FEEDBACK_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_FEEDBACK_H_

#include <optional>

#include "reward_service/program/source_facts.h"
#include "reward_service/scoring/credit.h"
#include "reward_service/scoring/kernel_facts.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/measurement.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// What to say of `grade`, whose verdict, compile, correctness, timing, profile and credit are filled in. `facts` may be
// invalid (Python candidates): advice that
// needs structure is not given then. The advice is ADVICE_UNSPECIFIED where nothing that was measured says what
// to do, "keep" only for a program that is faster than its reference, or at the memory ceiling with it.
// UNSCORABLE and INVALID_TASK give an empty Feedback. A pure function.
v1::Feedback ComputeFeedback(const v1::Grade& grade, const SourceFacts& facts,
                             const v1::AdviceFacts& advice_facts);

// Returns what is said of a CORRECT program whose speed-up is credited. `kernels` are those of a program on a GPU.
v1::Feedback SpeedFeedback(const v1::Grade& grade, const SourceFacts& facts, int num_lane_cores,
                           const std::optional<KernelFacts>& kernels);

// The speed-up that the evidence of such a Feedback names: what a program did before it was to be improved. None
// where it names none, as for programs that were not CORRECT.
std::optional<double> SpeedupIn(const v1::Feedback& feedback);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_FEEDBACK_H_
