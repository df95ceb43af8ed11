#include "core/model/training/cpu_trainer.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/kernels/adamw.h"
#include "core/model/hugging_face_weights.h"

namespace warpsmith {

CpuTrainer::CpuTrainer(const ParameterLayout& layout, const ModelTrainerOptions& options, ThreadPool* pool,
                       at::ScalarType dtype)
    : ModelTrainer(layout, options),
      pool_(pool),
      weights_(layout, dtype),
      model_(*TrainingModel::Create(layout.config(), Backend::kKernels,
                                    {.placement = {.dtype = dtype},
                                     .pool = pool,
                                     .num_token_ids = options.num_token_ids,
                                     .recomputation = options.recomputation})),
      optimiser_(layout, options.optimiser, pool) {
  weights_.RequireGrad(true);
}

absl::StatusOr<RowScores> CpuTrainer::Score(PassWeights weights, const ScoredBatch& batch) {
  if (weights == PassWeights::kPresent) return model_.Score(weights_, batch);
  WS_CHECK(has_reference()) << "no reference was kept";
  return model_.Score(*reference_, batch);
}

absl::Status CpuTrainer::Accumulate(const ScoredBatch& batch, LossGradient loss) {
  return model_.Accumulate(weights_, batch, loss);
}

absl::Status CpuTrainer::VisitGradients(absl::FunctionRef<absl::Status(at::Tensor&)> visit) {
  for (int index = 0; index < weights_.num_buffers(); ++index) {
    at::Tensor& gradient = weights_.buffer(index).mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(weights_.buffer(index).detach());
    WS_CHECK(gradient.is_contiguous());
    RETURN_IF_ERROR(visit(gradient));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> CpuTrainer::GradientNorm() {
  double sum = 0;
  RETURN_IF_ERROR(VisitGradients([&](const at::Tensor& gradient) {
    sum += SumOfSquares(gradient.numel(), gradient.const_data_ptr<float>(), pool_);
    return absl::OkStatus();
  }));
  return std::sqrt(sum);
}

absl::Status CpuTrainer::Update(const OptimiserStep& step) {
  optimiser_.Update(weights_, step);
  return ClearGradients();
}

absl::Status CpuTrainer::ClearGradients() {
  weights_.ZeroGrad();
  return absl::OkStatus();
}

absl::Status CpuTrainer::ClearMoments() {
  for (Parameters* const moment : {&optimiser_.first_moment(), &optimiser_.second_moment()}) {
    for (int index = 0; index < moment->num_buffers(); ++index) moment->buffer(index).zero_();
  }
  return absl::OkStatus();
}

Parameters& CpuTrainer::Of(StateSet set) {
  WS_CHECK(set != StateSet::kReference || has_reference()) << "no reference was kept";
  switch (set) {
    case StateSet::kFirstMoment:
      return optimiser_.first_moment();
    case StateSet::kSecondMoment:
      return optimiser_.second_moment();
    case StateSet::kReference:
      return *reference_;
    case StateSet::kWeights:
      break;
  }
  return weights_;
}

absl::Status CpuTrainer::Read(StateSet set, int buffer, int64_t first, absl::Span<float> values) {
  const at::Tensor& tensor = Of(set).buffer(buffer);
  WS_CHECK(first >= 0 && first + static_cast<int64_t>(values.size()) <= tensor.numel()) << first;
  std::copy_n(tensor.const_data_ptr<float>() + first, values.size(), values.data());
  return absl::OkStatus();
}

absl::Status CpuTrainer::Write(StateSet set, int buffer, int64_t first, absl::Span<const float> values) {
  const at::Tensor tensor = Of(set).buffer(buffer).detach();
  WS_CHECK(first >= 0 && first + static_cast<int64_t>(values.size()) <= tensor.numel()) << first;
  std::copy_n(values.data(), values.size(), tensor.mutable_data_ptr<float>() + first);
  return absl::OkStatus();
}

absl::Status CpuTrainer::LoadHuggingFace(const std::filesystem::path& directory) {
  return LoadHuggingFaceWeights(directory, weights_);
}

absl::Status CpuTrainer::InitRandom(uint64_t seed) {
  weights_.InitRandom(seed);
  return absl::OkStatus();
}

absl::Status CpuTrainer::KeepReference() {
  reference_.emplace(weights_.Clone(weights_.dtype()));
  return absl::OkStatus();
}

}  // namespace warpsmith
