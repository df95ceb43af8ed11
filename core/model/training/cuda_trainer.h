// A model in training on one GPU: bfloat16 in the passes, float32 in what adds up.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CUDA_TRAINER_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CUDA_TRAINER_H_

#include <cuda_bf16.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/model/device_memory.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/handles_cuda.h"
#include "core/model/shared_weights_cuda.h"
#include "core/model/training/cuda_layers.h"
#include "core/model/training/model_trainer.h"

namespace warpsmith {

// Memory for each of n elements of the layout: 4 bytes of a float32 weight, the master, which steps change; 8 of
// moments; 4 of the sum of gradients; 2 of the weight that passes compute with, the master rounded once; 2 more of a
// reference. Beside it the activations of the largest batch, which are taken when that comes first.
class CudaTrainer final : public ModelTrainer {
 public:
  // Makes a trainer on GPU `device`, counted as CUDA does, which becomes the current one. RESOURCE_EXHAUSTED with the
  // bytes; the errors of CudaLayers::Create and SharedMemory::Allocate.
  static absl::StatusOr<std::unique_ptr<CudaTrainer>> Create(
      const ParameterLayout& layout, const ModelTrainerOptions& options, int device,
      std::unique_ptr<TrainingAttention<__nv_bfloat16>> attention);
  ~CudaTrainer() override;

  absl::StatusOr<RowScores> Score(PassWeights weights, const ScoredBatch& batch) override;
  absl::Status Accumulate(const ScoredBatch& batch, LossGradient loss) override;
  absl::Status VisitGradients(absl::FunctionRef<absl::Status(at::Tensor&)> visit) override;
  absl::Status Read(StateSet set, int buffer, int64_t first, absl::Span<float> values) override;
  absl::Status Write(StateSet set, int buffer, int64_t first, absl::Span<const float> values) override;
  // Reads them into float32 on the GPU, without a copy of the model on the host.
  absl::Status LoadHuggingFace(const std::filesystem::path& directory) override;
  absl::Status InitRandom(uint64_t seed) override;
  absl::StatusOr<Parameters> HostWeights() override;
  absl::Status KeepReference() override;
  bool has_reference() const override { return reference_.get() != nullptr; }
  bool can_offer() const override { return true; }
  absl::StatusOr<OfferedMemory> Offer(uint64_t version, const std::filesystem::path& socket_path,
                                      absl::Time deadline) override;

 private:
  using Bfloat16 = __nv_bfloat16;

  CudaTrainer(const ParameterLayout& layout, const ModelTrainerOptions& options)
      : ModelTrainer(layout, options) {}
  absl::Status Allocate(int device);
  absl::StatusOr<double> GradientNorm() override;
  absl::Status Update(const OptimiserStep& step) override;
  absl::Status ClearGradients() override;
  absl::Status ClearMoments() override;

  absl::Status WriteReference(int64_t place, absl::Span<const float> values);
  // Names the buffers of the next pass. `gathers`: it adds to the sums of gradients.
  void Bind(const Bfloat16* weights, bool gathers);
  // Returns where element `first` of a buffer is in one of the float32 arrays.
  float* At(const DeviceMemory& memory, int buffer, int64_t first = 0) const;
  // Returns the float32 array of a set. REQUIRES: not the reference.
  float* Of(StateSet set) const;
  Bfloat16* reference() const { return reinterpret_cast<Bfloat16*>(reference_.get()); }
  int64_t num_bytes() const { return weights_->size() * int64_t{sizeof(float)}; }
  // Waits for the stream.
  absl::Status Await();

  CudaStream stream_;
  std::unique_ptr<TrainingAttention<Bfloat16>> attention_;
  std::unique_ptr<CudaLayers<Bfloat16>> layers_;
  std::unique_ptr<SharedWeights> weights_;
  std::optional<DeviceWeights> masters_;                   // [n] float32
  DeviceMemory first_moment_, second_moment_, gradients_;  // [n] float32
  DeviceMemory reference_;                                 // [n] bfloat16; empty before there is one
  DeviceMemory squares_;                                   // a double, and kSquareParts of scratch
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CUDA_TRAINER_H_
