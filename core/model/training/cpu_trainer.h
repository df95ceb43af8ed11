// A model in training on the CPU.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CPU_TRAINER_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CPU_TRAINER_H_

#include <optional>

#include "core/kernels/thread_pool.h"
#include "core/model/training/model_trainer.h"
#include "core/model/training/training_model.h"

namespace warpsmith {

class CpuTrainer final : public ModelTrainer {
 public:
  // `pool` outlives this; null: the calling thread alone. Weights and gradients are of `dtype`: float32, or float64,
  // which has passes alone: no step, no state, no reference.
  CpuTrainer(const ParameterLayout& layout, const ModelTrainerOptions& options, ThreadPool* pool,
             at::ScalarType dtype = at::kFloat);

  // The model's own, with their gradients; of both dtypes.
  Parameters& weights() { return weights_; }

  absl::StatusOr<RowScores> Score(PassWeights weights, const ScoredBatch& batch) override;
  absl::Status Accumulate(const ScoredBatch& batch, LossGradient loss) override;
  absl::Status VisitGradients(absl::FunctionRef<absl::Status(at::Tensor&)> visit) override;
  absl::Status Read(StateSet set, int buffer, int64_t first, absl::Span<float> values) override;
  absl::Status Write(StateSet set, int buffer, int64_t first, absl::Span<const float> values) override;
  absl::Status LoadHuggingFace(const std::filesystem::path& directory) override;
  absl::Status InitRandom(uint64_t seed) override;
  absl::StatusOr<Parameters> HostWeights() override { return weights_; }
  absl::Status KeepReference() override;
  bool has_reference() const override { return reference_.has_value(); }

 private:
  absl::StatusOr<double> GradientNorm() override;
  absl::Status Update(const OptimiserStep& step) override;
  absl::Status ClearGradients() override;
  absl::Status ClearMoments() override;
  Parameters& Of(StateSet set);

  ThreadPool* const pool_;
  Parameters weights_;
  TrainingModel model_;
  Optimiser optimiser_;
  std::optional<Parameters> reference_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CPU_TRAINER_H_
