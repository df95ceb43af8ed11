#include "reward_service/rubric/feedback.h"

#include <string>

#include "absl/strings/str_format.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/rubric/credit.h"

namespace warpsmith {
namespace {

// A program this close to the memory ceiling has no pass left to save.
constexpr double kMemoryBoundShare = 0.6;
// Below this share of the ceiling a memory-bound program walks its data in a bad order.
constexpr double kStridedShare = 0.1;
constexpr double kLibmShareMin = 0.3;
// At most this share of wrong elements looks like an edge that was missed, not like a wrong formula.
constexpr double kEdgeShareMax = 0.5;

v1::Feedback Say(const char* finding, std::string evidence, v1::Advice advice) {
  v1::Feedback feedback;
  feedback.set_finding(finding);
  feedback.set_evidence(std::move(evidence));
  feedback.set_advice(advice);
  return feedback;
}

std::string ErrorText(const v1::Correctness& correctness) {
  return absl::StrFormat("max error %.2f at %d of %d", correctness.max_absolute_error(),
                         correctness.num_wrong(), correctness.num_elements());
}

v1::Feedback Incorrect(const v1::Grade& grade, const DefectFacts& defects) {
  const v1::Correctness& correctness = grade.correctness();
  const double wrong_share = correctness.num_elements() > 0
                                 ? static_cast<double>(correctness.num_wrong()) / correctness.num_elements()
                                 : 1.0;
  if (defects.input_mutated) return Say("wrong values", "an input was changed", v1::ADVICE_FIX_BOUNDS);
  if (defects.out_of_bounds || wrong_share <= kEdgeShareMax) {
    return Say("wrong values", ErrorText(correctness), v1::ADVICE_FIX_BOUNDS);
  }
  const v1::Advice advice = defects.wrong_at_scale_only ? v1::ADVICE_FIX_NUMERICS : v1::ADVICE_FIX_FORMULA;
  return Say("wrong values", ErrorText(correctness), advice);
}

std::string SpeedText(const v1::Grade& grade, const SourceFacts& facts) {
  std::string text = absl::StrFormat("speedup %.2f", grade.timing().speedup());
  if (facts.valid) {
    absl::StrAppendFormat(&text, ", %d pass%s", facts.num_loop_nests, facts.num_loop_nests == 1 ? "" : "es");
  }
  return text;
}

double CeilingShare(const v1::Profile& profile) {
  const double ceiling = profile.gigabytes_per_second_ceiling();
  return ceiling > 0.0 ? profile.gigabytes_per_second() / ceiling : 0.0;
}

// From the most to the least certain; the first row that applies speaks.
v1::Feedback Correct(const v1::Grade& grade, const SourceFacts& facts, const DefectFacts& defects) {
  const v1::Profile& profile = grade.profile();
  const std::string evidence = SpeedText(grade, facts);
  const bool profiled = profile.num_samples() >= kProfileSamplesMin;
  const double ceiling_share = CeilingShare(profile);
  const bool near_ceiling = ceiling_share >= kMemoryBoundShare;
  if (!near_ceiling && facts.valid && facts.num_loop_nests > 1) {
    if (facts.num_allocations > 0) return Say("memory bound", evidence, v1::ADVICE_AVOID_TEMPORARY);
    return Say("several passes", evidence, v1::ADVICE_FUSE_PASSES);
  }
  if (profiled && !near_ceiling) {
    if (profile.libc_share() >= kLibmShareMin) return Say("compute bound", evidence, v1::ADVICE_APPROXIMATE);
    if (profile.vector_bits() == 0) {
      const bool strided = ceiling_share < kStridedShare && profile.bound() == "memory";
      return strided ? Say("memory bound", evidence, v1::ADVICE_TILE)
                     : Say("scalar code", evidence, v1::ADVICE_VECTORISE);
    }
    if (profile.num_threads() < defects.num_lane_cores)
      return Say("compute bound", evidence, v1::ADVICE_THREAD);
    if (facts.valid && facts.loop_depth_max >= 3) return Say("memory bound", evidence, v1::ADVICE_TILE);
  }
  return Say("as fast as it gets", evidence, v1::ADVICE_KEEP);
}

}  // namespace

v1::Feedback ComputeFeedback(const v1::Grade& grade, const SourceFacts& facts, const DefectFacts& defects) {
  switch (grade.verdict()) {
    case v1::VERDICT_NO_CODE:
      return Say("does not compile", "error: no code", v1::ADVICE_FIX_COMPILE_ERROR);
    case v1::VERDICT_COMPILE_ERROR:
      return Say("does not compile", FirstError(grade.compile().diagnostics()), v1::ADVICE_FIX_COMPILE_ERROR);
    case v1::VERDICT_RUNTIME_ERROR:
      return Say("crashes", grade.verdict_reason(),
                 defects.out_of_bounds ? v1::ADVICE_FIX_BOUNDS : v1::ADVICE_FIX_CRASH);
    case v1::VERDICT_TIMEOUT:
      return Say("times out", grade.verdict_reason(), v1::ADVICE_FIX_CRASH);
    case v1::VERDICT_WRONG_SHAPE:
    case v1::VERDICT_WRONG_DTYPE:
      return Say("wrong shape", grade.verdict_reason(), v1::ADVICE_FIX_SHAPE);
    case v1::VERDICT_NON_FINITE:
      return Say("not finite",
                 absl::StrFormat("nan at %d of %d", grade.correctness().num_wrong(),
                                 grade.correctness().num_elements()),
                 v1::ADVICE_FIX_NUMERICS);
    case v1::VERDICT_INCORRECT:
      return Incorrect(grade, defects);
    case v1::VERDICT_HACK:
      return Say("wrong values", grade.verdict_reason(), v1::ADVICE_FIX_FORMULA);
    case v1::VERDICT_CORRECT:
      return Correct(grade, facts, defects);
    default:
      return {};
  }
}

}  // namespace warpsmith
