// How many pages of a KV cache a GPU's memory takes.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_PAGE_BUDGET_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_PAGE_BUDGET_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace warpsmith::device {

struct PageBudget {
  // Of the GPU, and what no process holds of it.
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
  // What weights and buffers will take of that.
  int64_t fixed_bytes = 0;
  // Of total_bytes, for everything.
  double memory_share = 0;
  // One page in all layers, keys and values.
  int64_t page_bytes = 0;
  // That one whole context takes, and that all sequences together can fill.
  int64_t pages_of_context = 0;
  int64_t pages_useful = 0;
};

// The pages that the share leaves, the padding page among them; at most pages_useful and one. RESOURCE_EXHAUSTED with
// the values and the ways out where they do not hold one context.
absl::StatusOr<int> PagesWithinShare(const PageBudget& budget);

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_PAGE_BUDGET_H_
