// The GPU that a trainer computes its passes on, by turns with the other processes of the host.
#ifndef WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_
#define WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/device_lease.h"

namespace warpsmith {

// For one thread.
class TrainingGpu {
 public:
  // Empty where the host has no leases.
  using Turn = std::optional<DeviceLease::Held>;

  // Opens GPU `index`, counted as CUDA does, and makes it the calling thread's. Errors name trainer.device and the way
  // out: UNIMPLEMENTED in a build without CUDA, and those of UseCudaDevice. Where the lease cannot be opened the
  // trainer says so and computes without: a referee on this GPU would then time programs beside it.
  static absl::StatusOr<std::unique_ptr<TrainingGpu>> Open(int index);
  // Opens the GPU of a configuration; null for none. UNIMPLEMENTED for several ranks.
  static absl::StatusOr<std::unique_ptr<TrainingGpu>> Open(std::optional<int> index, int num_ranks);

  // `lease` may be empty: see Turn.
  TrainingGpu(int index, std::string name, std::optional<DeviceLease> lease)
      : index_(index), name_(std::move(name)), lease_(std::move(lease)) {}

  int index() const { return index_; }
  // "NVIDIA H200".
  const std::string& name() const { return name_; }

  // Waits until no other process has the GPU, and keeps it until the result is destroyed. REQUIRES: the GPU is idle by
  // then, and the former turn is over. DEADLINE_EXCEEDED after kGpuWaitMax, with the process that has it.
  absl::StatusOr<Turn> Take();

 private:
  const int index_;
  const std::string name_;
  std::optional<DeviceLease> lease_;
};

// A referee gives its GPU up between two programs, which takes it minutes at most.
inline constexpr absl::Duration kGpuWaitMax = absl::Minutes(15);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_
