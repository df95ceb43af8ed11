#include "reward_service/scoring/credit.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/confidence.h"

namespace warpsmith {
namespace {

bool Allows(const v1::Task& task, std::string_view library) {
  const auto& allowed = task.allowed_libraries();
  return std::find(allowed.begin(), allowed.end(), library) != allowed.end();
}

Credit Full(const v1::Timing& timing, std::string condition) {
  if (timing.parameters_fixed()) {
    return {CreditRule::kFixedParameters, 0.0,
            std::move(condition) + ", parameters cannot be set after construction"};
  }
  if (!timing.distinguishable()) return {CreditRule::kNotDistinguishable, 1.0, std::move(condition)};
  return {CreditRule::kFull, timing.speedup(), std::move(condition)};
}

}  // namespace

ShareBounds BoundsOf(double share, int num_samples) {
  if (num_samples <= 0) return {};
  const double n = num_samples;
  const double z2 = kNormalQuantile * kNormalQuantile;
  const double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormalQuantile / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

// From the bounds of a share of 0: z2 / (n + z2) < kOwnShareMin.
int NumDecidingSamples() {
  return 1 + static_cast<int>(kNormalQuantile * kNormalQuantile * (1 / kOwnShareMin - 1));
}

Credit ComputeCredit(const v1::Timing& timing, const v1::Profile& profile, const v1::Task& task) {
  if (timing.libraries_withheld()) {
    return Full(timing, Allows(task, "blas") ? "no library but those that the task allows could do the work"
                                             : "no library could do the work");
  }
  if (Allows(task, "torch") && Allows(task, "blas")) return Full(timing, "the task allows all libraries");
  double own = profile.own_code_share();
  double libraries = 0.0;
  (Allows(task, "torch") ? own : libraries) += profile.torch_share();
  (Allows(task, "blas") ? own : libraries) += profile.blas_share();
  const ShareBounds own_bounds = BoundsOf(std::min(own, 1.0), profile.num_samples());
  std::string condition = absl::StrFormat("own code %.0f %% of %d samples, torch %.0f %%, blas %.0f %%",
                                          100 * profile.own_code_share(), profile.num_samples(),
                                          100 * profile.torch_share(), 100 * profile.blas_share());
  if (own_bounds.low >= kOwnShareForCredit) return Full(timing, std::move(condition));
  if (own_bounds.high < kOwnShareMin) {
    const double at_least = BoundsOf(std::min(libraries, 1.0), profile.num_samples()).low;
    const bool explained = at_least > 1 - at_least;  // more than by all else
    return {explained ? CreditRule::kHack : CreditRule::kDelegated, 0.0, std::move(condition)};
  }
  Credit credit = Full(timing, std::move(condition));
  if (credit.rule != CreditRule::kFixedParameters && credit.speedup > 0.0) credit.rule = CreditRule::kShared;
  credit.speedup = std::min(credit.speedup, 1.0);
  return credit;
}

}  // namespace warpsmith
