#include "rollout_workers/device/page_budget.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace warpsmith::device {
namespace {

double Gibibytes(double bytes) { return bytes / (1 << 30); }

}  // namespace

absl::StatusOr<int> PagesWithinShare(const PageBudget& budget) {
  const auto total = static_cast<double>(budget.total_bytes);
  const auto left = static_cast<double>(budget.free_bytes - budget.fixed_bytes);
  const double usable = left - (1 - budget.memory_share) * total;
  const auto num_fitting =
      static_cast<int64_t>(std::max(0.0, usable) / static_cast<double>(budget.page_bytes));
  if (num_fitting < budget.pages_of_context + 1) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("The GPU has %.2f GiB, of which weights, buffers and other processes leave %.2f; the "
                        "share of %.2f gives %.2f "
                        "to the KV cache, and one context takes %.2f: shorten the context, raise the memory "
                        "share or free the GPU",
                        Gibibytes(total), Gibibytes(std::max(0.0, left)), budget.memory_share,
                        Gibibytes(std::max(0.0, usable)),
                        Gibibytes(static_cast<double>((budget.pages_of_context + 1) * budget.page_bytes))));
  }
  return static_cast<int>(std::min(num_fitting, std::max(budget.pages_useful, budget.pages_of_context) + 1));
}

}  // namespace warpsmith::device
