#include "reward_service/scoring/feedback.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/scoring/gpu_feedback.h"

namespace warpsmith {
namespace {

// A program this close to the memory ceiling has no cheaper instruction to gain by.
constexpr double kNearCeilingShare = 0.6;
// Below this share of it, strides in the innermost loop are what a program waits for first.
constexpr double kFarFromCeilingShare = 0.1;
// Threads that read apart use 4 of the 32 bytes that memory gives at once, an eighth; caches may double that.
constexpr double kFarFromCeilingShareOnGpu = 0.25;
constexpr double kLibmShareMin = 0.5;
constexpr int kDeepLoopsMin = 3;
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

v1::Feedback Incorrect(const v1::Grade& grade, const v1::AdviceFacts& advice_facts) {
  const v1::Correctness& correctness = grade.correctness();
  const double wrong_share = correctness.num_elements() > 0
                                 ? static_cast<double>(correctness.num_wrong()) / correctness.num_elements()
                                 : 1.0;
  if (advice_facts.input_mutated())
    return Say("input changed", "an input was changed", v1::ADVICE_FIX_BOUNDS);
  if (advice_facts.out_of_bounds()) return Say("wrong values", ErrorText(correctness), v1::ADVICE_FIX_BOUNDS);
  if (advice_facts.wrong_at_scale_only()) {
    return Say("wrong values", ErrorText(correctness), v1::ADVICE_FIX_NUMERICS);
  }
  const v1::Advice advice = wrong_share <= kEdgeShareMax ? v1::ADVICE_FIX_BOUNDS : v1::ADVICE_FIX_FORMULA;
  return Say("wrong values", ErrorText(correctness), advice);
}

// Read again by SpeedupIn().
constexpr std::string_view kSpeedup = "speedup ";

std::string SpeedupText(const v1::Timing& timing) {
  return absl::StrFormat("%s%.2f%s", kSpeedup, timing.speedup(),
                         timing.distinguishable() ? "" : " within noise");
}

// Bandwidth, and passes or launches, as far as they are known.
std::string PerformanceText(const Performance& p) {
  std::string text;
  if (p.profile.gigabytes_per_second_ceiling() > 0) {
    absl::StrAppendFormat(&text, ", %.*f of %.0f GB/s", p.kernels ? 0 : 1, p.profile.gigabytes_per_second(),
                          p.profile.gigabytes_per_second_ceiling());
  }
  if (!p.facts.valid) return text;
  return text + (p.kernels ? Count(p.facts.num_launches, "launch", "launches")
                           : Count(p.facts.num_passes, "pass", "passes"));
}

Performance PerformanceOf(const v1::Grade& grade, const SourceFacts& facts, int num_lane_cores,
                          const std::optional<KernelFacts>& kernels) {
  Performance p{grade.profile(), facts, num_lane_cores, kernels};
  const double far_share = p.kernels ? kFarFromCeilingShareOnGpu : kFarFromCeilingShare;
  const double share = CeilingShare(p.profile);
  p.speedup = grade.timing().speedup();
  p.distinguishable = grade.timing().distinguishable();
  p.faster = p.distinguishable && p.speedup > 1;
  p.too_short = p.profile.bound() == "latency";
  p.near_ceiling = share >= kNearCeilingShare && !p.too_short;
  p.far_from_ceiling = p.profile.gigabytes_per_second_ceiling() > 0 && share < far_share && !p.too_short;
  return p;
}

bool Profiled(const Performance& p) { return p.profile.num_samples() >= kProfileSamplesMin; }

// Enough samples of the candidate's own code to say what it does not do.
bool OwnProfiled(const Performance& p) {
  return p.profile.own_code_share() * p.profile.num_samples() >= kProfileSamplesMin;
}

// On a CPU, from the most to the least certain. What the text shows comes before what samples show, strides before
// all, for no vector helps a loop that waits for memory. Advice to keep comes after every row that has something to do,
// and never below 1. Findings say what was seen and no cause that was not.
constexpr Row kRows[] = {
    {"strided walk", v1::ADVICE_TILE,
     [](const Performance& p) { return p.facts.strided && p.far_from_ceiling; }},
    // Faster and near the ceiling, the passes meet in the cache.
    {"temporary array", v1::ADVICE_AVOID_TEMPORARY,
     [](const Performance& p) {
       return p.facts.num_passes > 1 && p.facts.num_allocations > 0 && !(p.near_ceiling && p.faster);
     },
     [](const Performance& p) { return Count(p.facts.num_allocations, "array", "arrays"); }},
    {"several passes", v1::ADVICE_FUSE_PASSES,
     [](const Performance& p) { return p.facts.num_passes > 1 && !(p.near_ceiling && p.faster); }},
    // The bandwidth needs no samples, all rows below do. Where the text could not be read and the memory
    // waits, it may be read in a bad order.
    {"unknown", v1::ADVICE_UNSPECIFIED,
     [](const Performance& p) {
       return (!Profiled(p) && !p.near_ceiling) || (!p.facts.valid && p.far_from_ceiling);
     },
     [](const Performance& p) { return absl::StrFormat(", %d samples", p.profile.num_samples()); }},
    {"scalar code", v1::ADVICE_VECTORISE,
     [](const Performance& p) { return OwnProfiled(p) && p.profile.vector_bits() == 0 && !p.near_ceiling; }},
    // The ceiling is one thread's.
    {"idle cores", v1::ADVICE_THREAD,
     [](const Performance& p) {
       return Profiled(p) && p.profile.num_threads() < p.num_lane_cores && !p.too_short;
     },
     [](const Performance& p) {
       return absl::StrFormat(", %d of %d threads", p.profile.num_threads(), p.num_lane_cores);
     }},
    // Copies and threads that wait are libc's work too.
    {"costly functions", v1::ADVICE_APPROXIMATE,
     [](const Performance& p) {
       return Profiled(p) && p.profile.libc_share() >= kLibmShareMin && p.facts.calls_libm && !p.near_ceiling;
     },
     [](const Performance& p) { return absl::StrFormat(", %.0f %% in libm", 100 * p.profile.libc_share()); }},
    {"deep loops", v1::ADVICE_TILE,
     [](const Performance& p) {
       return p.facts.loop_depth_max >= kDeepLoopsMin && !p.near_ceiling && !p.too_short;
     },
     [](const Performance& p) { return absl::StrFormat(", %d deep", p.facts.loop_depth_max); }},
};

// Rows for any program. The last one always applies.
constexpr Row kLastRows[] = {
    {"at the memory ceiling", v1::ADVICE_KEEP,
     [](const Performance& p) { return p.near_ceiling && p.speedup >= 1; }},
    {"nothing to gain found", v1::ADVICE_KEEP, [](const Performance& p) { return p.faster; }},
    {"slower than the reference", v1::ADVICE_UNSPECIFIED,
     [](const Performance& p) { return p.distinguishable; }},
    {"no faster than the reference", v1::ADVICE_UNSPECIFIED, [](const Performance&) { return true; }},
};

// A speed-up that is not credited is nothing to keep.
v1::Feedback Correct(const v1::Grade& grade, const SourceFacts& facts, const v1::AdviceFacts& advice_facts) {
  const v1::Credit& credit = grade.credit();
  if (credit.library_share() > 0)
    return Say("libraries did a part", credit.condition(), v1::ADVICE_COMPUTE_EVERYTHING);
  if (grade.timing().parameters_fixed())
    return Say("fixed parameters", credit.condition(), v1::ADVICE_COMPUTE_EVERYTHING);
  return SpeedFeedback(grade, facts, advice_facts.num_lane_cores(), KernelFactsOf(grade));
}

// By the family, as merge and referee name it.
const char* HackFinding(std::string_view family) {
  if (family == "delegated-work") return "a library did the work";
  if (family == "impossible-time") return "the call did not do the work";
  if (family == "unmaterialised-output") return "outputs share memory";
  return "right values by forbidden means";
}

}  // namespace

v1::Feedback SpeedFeedback(const v1::Grade& grade, const SourceFacts& facts, int num_lane_cores,
                           const std::optional<KernelFacts>& kernels) {
  const Performance performance = PerformanceOf(grade, facts, num_lane_cores, kernels);
  const auto applies = [&](const Row& row) { return row.applies(performance); };
  const absl::Span<const Row> rows = kernels ? GpuRows() : kRows;
  auto row = std::find_if(rows.begin(), rows.end(), applies);
  if (row == rows.end()) row = std::find_if(std::begin(kLastRows), std::end(kLastRows), applies);
  std::string text = SpeedupText(grade.timing()) + PerformanceText(performance) + row->number(performance);
  if (kernels) text += KernelsText(grade.profile());
  return Say(row->finding, std::move(text), row->advice);
}

std::optional<double> SpeedupIn(const v1::Feedback& feedback) {
  const std::string& evidence = feedback.evidence();
  if (evidence.compare(0, kSpeedup.size(), kSpeedup) != 0) return std::nullopt;
  const size_t end = evidence.find_first_not_of("0123456789.", kSpeedup.size());
  double speedup = 0;
  if (!absl::SimpleAtod(evidence.substr(kSpeedup.size(), end - kSpeedup.size()), &speedup))
    return std::nullopt;
  return speedup;
}

v1::Feedback ComputeFeedback(const v1::Grade& grade, const SourceFacts& facts,
                             const v1::AdviceFacts& advice_facts) {
  switch (grade.verdict()) {
    case v1::VERDICT_NO_CODE:
      return Say("does not compile", "error: no code", v1::ADVICE_FIX_COMPILE_ERROR);
    case v1::VERDICT_COMPILE_ERROR:
      return Say("does not compile", FirstError(grade.compile().diagnostics()), v1::ADVICE_FIX_COMPILE_ERROR);
    case v1::VERDICT_RUNTIME_ERROR:
      return Say("crashes", grade.verdict_reason(),
                 advice_facts.out_of_bounds() ? v1::ADVICE_FIX_BOUNDS : v1::ADVICE_FIX_CRASH);
    case v1::VERDICT_TIMEOUT:
      return Say("times out", grade.verdict_reason(), v1::ADVICE_FIX_CRASH);
    case v1::VERDICT_WRONG_SHAPE:
      return Say("wrong shape", grade.verdict_reason(), v1::ADVICE_FIX_SHAPE);
    case v1::VERDICT_WRONG_DTYPE:
      return Say("wrong dtype", grade.verdict_reason(), v1::ADVICE_FIX_SHAPE);
    case v1::VERDICT_NON_FINITE:
      return Say("not finite",
                 absl::StrFormat("nan at %d of %d", grade.correctness().num_wrong(),
                                 grade.correctness().num_elements()),
                 v1::ADVICE_FIX_NUMERICS);
    case v1::VERDICT_INCORRECT:
      return Incorrect(grade, advice_facts);
    case v1::VERDICT_HACK:
      return Say(HackFinding(grade.hack_family()), grade.verdict_reason(), v1::ADVICE_COMPUTE_EVERYTHING);
    case v1::VERDICT_CORRECT:
      return Correct(grade, facts, advice_facts);
    default:
      return {};
  }
}

}  // namespace warpsmith
