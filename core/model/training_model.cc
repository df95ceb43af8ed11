#include "core/model/training_model.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/operator_model.h"
#include "core/model/training_functions.h"

namespace warpsmith {
namespace {

void CheckBatch(const PackedBatch& batch) {
  WS_CHECK(batch.positions.size() == batch.tokens.size() && !batch.cu_seqlens.empty() &&
           batch.cu_seqlens.back() == batch.num_tokens())
      << "packed batch of " << batch.tokens.size() << " tokens, " << batch.positions.size() << " positions, "
      << batch.cu_seqlens.size() << " boundaries";
}

int HeadBuffer(const ParameterLayout& layout) {
  return layout.config().tie_word_embeddings ? layout.embedding_buffer() : layout.final_buffer();
}

int64_t HeadOffset(const ParameterLayout& layout) {
  return layout.config().tie_word_embeddings ? 0 : layout.entry(layout.final_buffer(), "head").offset;
}

template <typename A>
at::Tensor KernelForward(const TrainingCorePointer<A>& core, const Parameters& parameters,
                         const PackedBatch& batch) {
  const auto shared = std::make_shared<const PackedBatch>(batch);
  at::Tensor x = ApplyEmbedding<A>(core, shared, parameters.buffer(core->layout.embedding_buffer()));
  for (int64_t layer = 0; layer < core->layout.config().num_hidden_layers; ++layer) {
    x = ApplyLayer<A>(core, shared, x, parameters.buffer(core->layout.layer_buffer(layer)));
  }
  return ApplyFinalNorm<A>(core, x, parameters.buffer(core->layout.final_buffer()));
}

template <typename A>
TokenScores KernelScores(const TrainingCorePointer<A>& core, const Parameters& parameters,
                         const at::Tensor& hidden, const std::vector<int64_t>& targets, double temperature) {
  const ParameterLayout& layout = core->layout;
  const std::vector<at::Tensor> scores = ApplyScoring<A>(core, hidden, parameters.buffer(HeadBuffer(layout)),
                                                         HeadOffset(layout), targets, temperature);
  return {scores[0], scores[1]};
}

template <typename A>
at::Tensor KernelLogits(const TrainingCore<A>& core, const Parameters& parameters, const at::Tensor& hidden) {
  const ModelConfig& c = core.layout.config();
  const at::Tensor dense = hidden.contiguous(), buffer = parameters.buffer(HeadBuffer(core.layout));
  at::Tensor logits = at::empty({hidden.size(0), c.vocab_size}, hidden.options());
  PackedMatrix<A> head;
  head.Pack(buffer.const_data_ptr<A>() + HeadOffset(core.layout), c.vocab_size, c.hidden_size, core.pool);
  head.Apply(dense.const_data_ptr<A>(), c.hidden_size, hidden.size(0), logits.mutable_data_ptr<A>(),
             c.vocab_size, ProductMode::kStore);
  return logits;
}

}  // namespace

// The core of the dtype that the kernels compute in; both null: the operators compute.
struct TrainingModel::State {
  ModelConfig config;
  Placement placement;
  int64_t num_token_ids;
  TrainingCorePointer<float> floats;
  TrainingCorePointer<double> doubles;

  void Check(const Parameters& parameters) const {
    WS_CHECK(parameters.config() == config) << "parameters of another configuration";
    WS_CHECK(parameters.dtype() == placement.dtype && parameters.device() == placement.device)
        << "parameters of " << parameters.dtype() << " on " << parameters.device() << " for a model of "
        << placement.dtype << " on " << placement.device;
  }
};

absl::StatusOr<TrainingModel> TrainingModel::Create(const ModelConfig& config, Backend backend,
                                                    TrainingModelOptions options) {
  RETURN_IF_ERROR(CheckBackend(config, backend, options.placement, kTrainingKernelDtypes));
  const int64_t num_token_ids = NumTokenIds(config, options.num_token_ids);
  auto state = std::make_unique<State>(State{config, options.placement, num_token_ids, nullptr, nullptr});
  const bool is_double = options.placement.dtype == at::kDouble;
  if (backend == Backend::kKernels && is_double) {
    state->doubles = std::make_shared<TrainingCore<double>>(config, num_token_ids, options.pool);
  } else if (backend == Backend::kKernels) {
    state->floats = std::make_shared<TrainingCore<float>>(config, num_token_ids, options.pool);
  }
  return TrainingModel(std::move(state));
}

TrainingModel::TrainingModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrainingModel::~TrainingModel() = default;
TrainingModel::TrainingModel(TrainingModel&&) noexcept = default;
TrainingModel& TrainingModel::operator=(TrainingModel&&) noexcept = default;

at::Tensor TrainingModel::Forward(const Parameters& parameters, const PackedBatch& batch) const {
  CheckBatch(batch);
  state_->Check(parameters);
  if (state_->floats != nullptr) return KernelForward<float>(state_->floats, parameters, batch);
  if (state_->doubles != nullptr) return KernelForward<double>(state_->doubles, parameters, batch);
  return OperatorForward(parameters, batch);
}

TokenScores TrainingModel::TokenLogProbs(const Parameters& parameters, const at::Tensor& hidden,
                                         const std::vector<int64_t>& targets, double temperature) const {
  WS_CHECK(hidden.size(0) == static_cast<int64_t>(targets.size()) && temperature > 0)
      << hidden.size(0) << " hidden states, " << targets.size() << " targets, temperature " << temperature;
  state_->Check(parameters);
  if (state_->floats != nullptr) {
    return KernelScores<float>(state_->floats, parameters, hidden, targets, temperature);
  }
  if (state_->doubles != nullptr) {
    return KernelScores<double>(state_->doubles, parameters, hidden, targets, temperature);
  }
  return OperatorScores(OperatorLogits(parameters, hidden).narrow(1, 0, state_->num_token_ids), targets,
                        temperature);
}

at::Tensor TrainingModel::Logits(const Parameters& parameters, const at::Tensor& hidden) const {
  state_->Check(parameters);
  if (state_->floats != nullptr) return KernelLogits(*state_->floats, parameters, hidden);
  if (state_->doubles != nullptr) return KernelLogits(*state_->doubles, parameters, hidden);
  return OperatorLogits(parameters, hidden);
}

}  // namespace warpsmith
