#include "reward_service/scoring/credit.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

bool Allows(const v1::Task& task, std::string_view library) {
  const auto& allowed = task.allowed_libraries();
  return std::find(allowed.begin(), allowed.end(), library) != allowed.end();
}

struct Libraries {
  double share;
  std::string condition;
};

Libraries LibrariesOf(const v1::Timing& timing, const v1::Task& task) {
  if (Allows(task, "torch")) return {0, "the task allows all libraries"};
  const bool blas_is_allowed = Allows(task, "blas");
  if (blas_is_allowed && (timing.libraries_withheld() || timing.products_alone()))
    return {0, "no library but those that the task allows could do the work"};
  if (timing.libraries_withheld()) return {0, "no library could do the work"};
  if (!timing.products_alone()) return {timing.library_share(), "libraries could do all of the work"};
  return {timing.library_share(),
          absl::StrFormat("libraries could do products and convolutions, %.0f %% of the reference's time",
                          100 * timing.library_share())};
}

double Own(const v1::Timing& timing) {
  return timing.distinguishable() ? timing.speedup() : std::min(timing.speedup(), 1.0);
}

double Saved(const v1::Timing& timing) { return timing.speedup_low() > 1 ? 1 - 1 / timing.speedup_low() : 0; }

}  // namespace

v1::Credit ComputeCredit(const v1::Timing& timing, const v1::Task& task) {
  Libraries libraries = LibrariesOf(timing, task);
  v1::Credit credit;
  credit.set_library_share(libraries.share);
  if (timing.parameters_fixed()) {
    // No clock has what the program worked out while it was constructed.
    absl::StrAppend(&libraries.condition, ", parameters cannot be set after construction");
  } else {
    credit.set_own(Own(timing));
    credit.set_saved(Saved(timing));
  }
  credit.set_speedup((1 - libraries.share) * credit.own() + libraries.share * credit.saved());
  credit.set_condition(std::move(libraries.condition));
  return credit;
}

bool IsAllOwn(const v1::Credit& credit, const v1::Timing& timing) {
  return credit.library_share() == 0 && !timing.parameters_fixed();
}

}  // namespace warpsmith
