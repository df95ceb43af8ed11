// What carries out StepPlans: weights, pages of a KV cache, and steps over them.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollout_workers/paged/step_plan.h"

namespace warpsmith {
class Parameters;
class WeightSource;
}  // namespace warpsmith

namespace warpsmith::device {

// A GPU, or a fake of one in tests. One thread at a time. Errors carry the device's own message.
class StepDevice {
 public:
  virtual ~StepDevice() = default;

  // Pages of the KV cache, the padding page among them.
  virtual int num_pages() const = 0;

  // Not OK: the device can do nothing any more, nor can another one in this process, for CUDA's errors of what ran
  // stay. Every other call fails with this reason.
  virtual absl::Status lost() const = 0;

  // Replaces the weights, none before the first call. No step may be launched and not awaited. After an error there
  // are no usable weights; a device that is lost by it may still read what it was given.
  virtual absl::Status LoadHuggingFace(const std::filesystem::path& directory) = 0;
  virtual absl::Status SetParameters(const Parameters& parameters) = 0;
  virtual absl::Status FillRandom(uint64_t seed) = 0;
  // INVALID_ARGUMENT where it has another number of elements, or values that are not finite; the errors of
  // WeightSource::CopyTo.
  virtual absl::Status TakeWeights(WeightSource& source) = 0;

  // Launches a plan behind those before it and does not wait; `plan` may change as soon as this returns. At most two
  // plans may be launched and not awaited.
  virtual absl::Status Launch(const paged::StepPlan& plan) = 0;

  // The results of the oldest plan that was launched and not awaited, as PagedBatch::Complete takes them.
  // DEADLINE_EXCEEDED with the number of the step where the device does not end it in time.
  virtual absl::StatusOr<std::vector<paged::TokenResult>> AwaitOldest() = 0;

  // Forgets what was launched and not awaited, once the device is done with it. Where that does not end in time the
  // device is lost.
  virtual void DropSteps() = 0;

  // Gives the memory of the pages, or of the weights, back, and takes it again; nothing may be launched between, and
  // weights are to be replaced after it. All may be repeated. RESOURCE_EXHAUSTED where others have taken the memory
  // meanwhile. To free does nothing on a lost device.
  virtual void FreePages() = 0;
  virtual absl::Status AllocatePages() = 0;
  virtual void FreeWeights() = 0;
  virtual absl::Status AllocateWeights() = 0;
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_H_
