#include "reward_service/scoring/credit.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

// Of all samples: below it, what the C library and the kernel do for nobody in particular is the candidate's.
constexpr double kKnownShareMin = 0.2;

bool Allows(const v1::Task& task, std::string_view library) {
  const auto& allowed = task.allowed_libraries();
  return std::find(allowed.begin(), allowed.end(), library) != allowed.end();
}

Credit FixedParameters(std::string condition) {
  return {CreditRule::kFixedParameters, 0.0,
          std::move(condition) + ", parameters cannot be set after construction"};
}

}  // namespace

double ForeignShare(const v1::Profile& profile, const v1::Task& task) {
  const double known = profile.own_code_share() + profile.torch_share() + profile.blas_share();
  double foreign = 0.0;
  if (!Allows(task, "torch")) foreign += profile.torch_share();
  if (!Allows(task, "blas")) foreign += profile.blas_share();
  return foreign / std::max(known, kKnownShareMin);
}

Credit ComputeCredit(const v1::Timing& timing, const v1::Profile& profile, const v1::Task& task) {
  const double speedup = timing.distinguishable() ? timing.speedup() : 1.0;
  const CreditRule timing_rule =
      timing.distinguishable() ? CreditRule::kFull : CreditRule::kNotDistinguishable;
  if (profile.slow_call_share() >= kSlowCallShareMin) {
    return {CreditRule::kOtherCalls, 0.0,
            absl::StrFormat("of the calls watched, %.0f %% took far longer than the timed ones",
                            100 * profile.slow_call_share())};
  }
  if (profile.num_samples() < kProfileSamplesMin) {
    std::string condition = absl::StrFormat("only %d samples: shares not used", profile.num_samples());
    if (timing.parameters_fixed()) return FixedParameters(std::move(condition));
    return {timing_rule, speedup, std::move(condition)};
  }
  const double foreign = ForeignShare(profile, task);
  std::string condition = absl::StrFormat("own code %.0f %% of %d samples, torch %.0f %%, blas %.0f %%",
                                          100 * profile.own_code_share(), profile.num_samples(),
                                          100 * profile.torch_share(), 100 * profile.blas_share());
  const bool light = profile.has_library_work() && profile.library_work() < kSmallLibraryWorkMax;
  if (foreign > 1.0 - kHackShareMax && !light) return {CreditRule::kHack, 0.0, condition};
  if (foreign >= 1.0 - kCreditedShareMin && !light) return {CreditRule::kDelegated, 0.0, condition};
  // Libraries that do what the reference does cannot be made up for by burning time beside them.
  if (foreign >= kPaddedShareMin && foreign >= kPaddedWorkMin * timing.speedup() && !light)
    return {CreditRule::kDelegated, 0.0, condition + ", as long as most of the reference"};
  if (foreign > 0.0 && profile.delegated_call_share() >= kDelegatedCallShareMin &&
      !profile.has_library_work()) {
    return {CreditRule::kDelegated, 0.0,
            absl::StrFormat("%s; of the calls watched, %.0f %% left to libraries", condition,
                            100 * profile.delegated_call_share())};
  }
  if (timing.parameters_fixed()) return FixedParameters(std::move(condition));
  return {timing_rule, speedup, std::move(condition)};
}

}  // namespace warpsmith
