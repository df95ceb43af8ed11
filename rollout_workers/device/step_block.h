// All arrays of a StepPlan one after another, so that one copy brings them to a device.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BLOCK_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "rollout_workers/device/step_arrays.h"
#include "rollout_workers/paged/step_plan.h"

namespace warpsmith::device {

// Bounds of every plan: see step_plan.h.
struct StepLimits {
  int64_t queries_max = 0;  // also of rows with logits, samples and page copies
  int64_t rows_max = 0;
  int64_t pages_of_query_max = 0;

  int64_t page_indices_max() const { return queries_max * pages_of_query_max; }
};

// Padding counts.
StepShape ShapeOf(const paged::StepPlan& plan);

// Each array has the place of its largest size, so that its address is the same in every step and a CUDA graph can
// hold it. What takes the most room and is seldom full, page_indices, is the last: a copy ends where a plan's does.
class StepBlock {
 public:
  explicit StepBlock(const StepLimits& limits);

  // Room of the whole block.
  size_t bytes() const { return bytes_; }

  // The arrays of a block at `base`, which is aligned to 16 bytes and need not be memory of the host.
  StepArrays ArraysAt(std::byte* base) const;

  // Writes `plan` to the block at `base` and returns how many of its first bytes matter. Crashes where the plan is
  // over the limits.
  size_t Pack(const paged::StepPlan& plan, std::byte* base) const;

 private:
  const StepLimits limits_;
  size_t bytes_ = 0;
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_BLOCK_H_
