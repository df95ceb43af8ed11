#include "core/model/training/training_model.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/training/cpu_layers.h"
#include "core/model/training/operator_layers.h"

namespace warpsmith {
namespace {

// The gradients are zeros where there were none.
template <typename T>
void Bind(const Parameters& parameters, bool gathers, CpuLayers<T>& layers) {
  std::vector<const T*> weights;
  std::vector<T*> gradients;
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    const at::Tensor& buffer = parameters.buffer(i);
    weights.push_back(buffer.const_data_ptr<T>());
    if (!gathers) continue;
    at::Tensor& gradient = buffer.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(buffer.detach());
    WS_CHECK(gradient.is_contiguous()) << "gradient of buffer " << i;
    gradients.push_back(gradient.mutable_data_ptr<T>());
  }
  layers.Bind(std::move(weights), std::move(gradients));
}

absl::Status ForwardTo(LayerCompute& layers, const ScoredBatch& batch) {
  RETURN_IF_ERROR(layers.Begin(batch, /*keeps_activations=*/false));
  RETURN_IF_ERROR(layers.Embed());
  for (int64_t layer = 0; layer < layers.num_layers(); ++layer) {
    RETURN_IF_ERROR(layers.ForwardLayer(layer));
  }
  return absl::OkStatus();
}

template <typename T>
at::Tensor LogitsOf(CpuLayers<T>& layers, const Parameters& parameters, const ScoredBatch& batch) {
  WS_CHECK(ForwardTo(layers, batch).ok());
  at::Tensor logits = at::empty({batch.packed.num_tokens(), parameters.config().vocab_size},
                                parameters.buffer(0).detach().options());
  layers.Logits(logits.mutable_data_ptr<T>());
  return logits;
}

}  // namespace

// One of the three computes.
struct TrainingModel::State {
  ModelConfig config;
  Placement placement;
  std::optional<CpuLayers<float>> floats;
  std::optional<CpuLayers<double>> doubles;
  std::optional<OperatorLayers> operators;

  LayerCompute& Bound(const Parameters& parameters, bool gathers) {
    WS_CHECK(parameters.config() == config) << "parameters of another configuration";
    WS_CHECK(parameters.dtype() == placement.dtype && parameters.device() == placement.device)
        << "parameters of " << parameters.dtype() << " on " << parameters.device() << " for a model of "
        << placement.dtype << " on " << placement.device;
    if (floats.has_value()) {
      Bind(parameters, gathers, *floats);
      return *floats;
    }
    if (doubles.has_value()) {
      Bind(parameters, gathers, *doubles);
      return *doubles;
    }
    operators->Bind(&parameters);
    return *operators;
  }
};

absl::StatusOr<TrainingModel> TrainingModel::Create(const ModelConfig& config, Backend backend,
                                                    TrainingModelOptions options) {
  RETURN_IF_ERROR(CheckBackend(config, backend, options.placement, kTrainingKernelDtypes));
  const int64_t num_token_ids = NumTokenIds(config, options.num_token_ids);
  auto state = std::make_unique<State>();
  state->config = config;
  state->placement = options.placement;
  if (backend == Backend::kOperators) {
    state->operators.emplace(config, num_token_ids);
  } else if (options.placement.dtype == at::kDouble) {
    state->doubles.emplace(config, num_token_ids, options.pool, options.recomputation);
  } else {
    state->floats.emplace(config, num_token_ids, options.pool, options.recomputation);
  }
  return TrainingModel(std::move(state));
}

TrainingModel::TrainingModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrainingModel::~TrainingModel() = default;
TrainingModel::TrainingModel(TrainingModel&&) noexcept = default;
TrainingModel& TrainingModel::operator=(TrainingModel&&) noexcept = default;

absl::StatusOr<RowScores> TrainingModel::Score(const Parameters& parameters, const ScoredBatch& batch) const {
  return ScoreBatch(state_->Bound(parameters, /*gathers=*/false), batch);
}

absl::Status TrainingModel::Accumulate(const Parameters& parameters, const ScoredBatch& batch,
                                       LossGradient loss) const {
  return AccumulateGradient(state_->Bound(parameters, /*gathers=*/true), batch, loss);
}

at::Tensor TrainingModel::Logits(const Parameters& parameters, const PackedBatch& batch) const {
  const c10::AutoGradMode no_gradient(false);
  const ScoredBatch scored{batch, std::vector<int64_t>(batch.tokens.size(), -1)};
  LayerCompute& layers = state_->Bound(parameters, /*gathers=*/false);
  if (state_->floats.has_value()) return LogitsOf(*state_->floats, parameters, scored);
  if (state_->doubles.has_value()) return LogitsOf(*state_->doubles, parameters, scored);
  WS_CHECK(ForwardTo(layers, scored).ok());
  return state_->operators->Logits();
}

}  // namespace warpsmith
