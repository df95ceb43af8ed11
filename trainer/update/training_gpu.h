// The GPU that a trainer computes on, by turns with the other processes of the host.
#ifndef WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_
#define WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/device_lease.h"
#include "core/model/training/model_trainer.h"

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

  // Describes a GPU; see CudaDevice.
  struct Facts {
    int index = 0;
    std::string name;
    double peak_flops = 0;
    int64_t total_memory = 0;
  };
  // `lease` may be empty: see Turn.
  TrainingGpu(Facts facts, std::optional<DeviceLease> lease)
      : facts_(std::move(facts)), lease_(std::move(lease)) {}

  int index() const { return facts_.index; }
  // "NVIDIA H200".
  const std::string& name() const { return facts_.name; }
  // Floating-point operations a second; see CudaDevice.
  double peak_flops() const { return facts_.peak_flops; }
  // Bytes of the whole card.
  int64_t total_memory() const { return facts_.total_memory; }

  // Returns the bytes of the GPU's memory that no process has. The errors of FreeDeviceMemory.
  absl::StatusOr<int64_t> FreeMemory() const;

  // Returns a trainer in this GPU's memory. With `deterministic` a step repeated has the same bits, at the cost of a
  // slower attention. The errors of CudaTrainer::Create, with the way out.
  absl::StatusOr<std::unique_ptr<ModelTrainer>> MakeTrainer(const ParameterLayout& layout,
                                                            const ModelTrainerOptions& options,
                                                            bool deterministic) const;

  // Waits until no other process has the GPU, and keeps it until the result is destroyed. REQUIRES: the GPU is idle by
  // then, and the former turn is over. DEADLINE_EXCEEDED after kGpuWaitMax, with the process that has it.
  absl::StatusOr<Turn> Take();

 private:
  const Facts facts_;
  std::optional<DeviceLease> lease_;
};

// A referee gives its GPU up between two programs, which takes it minutes at most.
inline constexpr absl::Duration kGpuWaitMax = absl::Minutes(15);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_TRAINING_GPU_H_
