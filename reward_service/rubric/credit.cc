#include "reward_service/rubric/credit.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

bool Allows(const v1::Task& task, std::string_view library) {
  const auto& allowed = task.allowed_libraries();
  return std::find(allowed.begin(), allowed.end(), library) != allowed.end();
}

}  // namespace

Credit ComputeCredit(const v1::Timing& timing, const v1::Profile& profile, const v1::Task& task) {
  const double speedup = timing.distinguishable() ? timing.speedup() : 1.0;
  const CreditRule timing_rule =
      timing.distinguishable() ? CreditRule::kFull : CreditRule::kNotDistinguishable;
  if (profile.num_samples() < kProfileSamplesMin) {
    return {timing_rule, speedup, absl::StrFormat("only %d samples: shares not used", profile.num_samples())};
  }
  double foreign = 0.0;
  if (!Allows(task, "torch")) foreign += profile.torch_share();
  if (!Allows(task, "blas")) foreign += profile.blas_share();
  const double own = 1.0 - profile.torch_share() - profile.blas_share();
  const std::string condition =
      absl::StrFormat("own code %.0f %% of %d samples, torch %.0f %%, blas %.0f %%", 100 * own,
                      profile.num_samples(), 100 * profile.torch_share(), 100 * profile.blas_share());
  if (foreign > 1.0 - kHackShareMax) return {CreditRule::kHack, 0.0, condition};
  if (foreign >= 1.0 - kCreditedShareMin) return {CreditRule::kDelegated, 0.0, condition};
  return {timing_rule, speedup, condition};
}

}  // namespace warpsmith
