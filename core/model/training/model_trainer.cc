#include "core/model/training/model_trainer.h"

#include <cmath>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<double> ModelTrainer::Step(double learning_rate, MatrixUpdate matrices) {
  ASSIGN_OR_RETURN(const double norm, GradientNorm());
  if (!std::isfinite(norm)) {
    RETURN_IF_ERROR(ClearGradients());
    return norm;
  }
  const double norm_max = options_.optimiser.gradient_norm_max;
  RETURN_IF_ERROR(Update({.learning_rate = learning_rate,
                          .gradient_scale = norm > norm_max ? norm_max / norm : 1.0,
                          .step = num_steps_ + 1,
                          .matrices = matrices}));
  ++num_steps_;
  return norm;
}

absl::Status ModelTrainer::ResetOptimiser() {
  num_steps_ = 0;
  return ClearMoments();
}

absl::Status ModelTrainer::SetWeights(const Parameters& weights) {
  WS_CHECK(weights.config() == layout_.config()) << "weights of another configuration";
  for (int index = 0; index < weights.num_buffers(); ++index) {
    const at::Tensor& buffer = weights.buffer(index);
    RETURN_IF_ERROR(Write(StateSet::kWeights, index, 0,
                          {buffer.const_data_ptr<float>(), static_cast<size_t>(buffer.numel())}));
  }
  return absl::OkStatus();
}

absl::StatusOr<OfferedMemory> ModelTrainer::Offer(uint64_t, const std::filesystem::path&, absl::Time) {
  return absl::UnimplementedError("weights on the CPU are published as a file");
}

}  // namespace warpsmith
