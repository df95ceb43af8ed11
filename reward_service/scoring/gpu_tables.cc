#include "reward_service/scoring/gpu_tables.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

constexpr double kNearCeilingShare = 0.5;  // as of a CPU
constexpr double kSlowSpeedup = 0.5;       // the same

AdviceOutcome Shown(bool shown, std::string what, const AdviceOutcome& by_time) {
  return {shown && by_time.done, absl::StrCat(what, ", ", by_time.condition)};
}

}  // namespace

EngineeringRow EngineeringOnGpu(const v1::Timing& timing, const v1::Credit& credit,
                                const v1::Profile& profile, const KernelFacts& kernels) {
  const bool near_ceiling = CeilingShare(profile) >= kNearCeilingShare && profile.bound() != "latency";
  const bool faster = timing.speedup_low() > 1.0;
  const bool slow = timing.speedup_high() < kSlowSpeedup;
  const std::string condition = absl::StrFormat("%.0f %% of the memory ceiling, %d local accesses",
                                                100 * CeilingShare(profile), kernels.num_local_accesses);
  // By what was measured, and by faults of the machine code: what is good there may be in code that never runs.
  if (near_ceiling && faster) return {5, condition, "uses the GPU's memory, and beats the reference"};
  if (near_ceiling) return {4, condition, "uses the GPU's memory"};
  if (kernels.num_kernels == 0) return {3, condition, "its machine code is not known"};
  if (faster && credit.library_share() == 0 && !kernels.spills())
    return {4, condition, "beats the reference without libraries"};
  if (kernels.spills() && slow) {
    return {1, condition, "keeps registers in memory, and is less than half as fast as the reference"};
  }
  if (kernels.spills()) return {2, condition, "keeps registers in memory"};
  if (slow) return {2, condition, "less than half as fast as the reference"};
  return {3, condition, "neither near the GPU's memory nor faster than the reference"};
}

AdviceOutcome FollowedOnGpu(v1::Advice advice, const KernelFacts& kernels, const AdviceOutcome& by_time) {
  switch (advice) {
    case v1::ADVICE_AVOID_SPILLS:
      // What is not there any more cannot be feigned.
      return {kernels.num_kernels > 0 && !kernels.spills(),
              absl::StrFormat("%d B of stack a thread, %d local accesses", kernels.stack_bytes,
                              kernels.num_local_accesses)};
    case v1::ADVICE_VECTORISE_LOADS:
      return Shown(kernels.load_bits_max >= kWideLoadBits, absl::StrCat(kernels.load_bits_max, "-bit loads"),
                   by_time);
    case v1::ADVICE_USE_SHARED_MEMORY:
      return Shown(kernels.shares_memory, kernels.shares_memory ? "shared memory" : "no shared memory",
                   by_time);
    case v1::ADVICE_REDUCE_BY_WARP:
      return Shown(kernels.num_kernels > 0 && kernels.num_lone_atomics == 0,
                   absl::StrCat(kernels.num_lone_atomics, " atomics without shuffles"), by_time);
    default:
      return by_time;
  }
}

}  // namespace warpsmith
