#include "core/model/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/decoder_kernels.h"
#include "core/model/operator_model.h"

namespace warpsmith {
namespace {

absl::Status CheckTokens(const StepSequence& sequence, const ModelConfig& config) {
  if (sequence.token_ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("step: slot ", sequence.slot, " has no tokens"));
  }
  for (int32_t token : sequence.token_ids) {
    if (token >= 0 && token < config.vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrCat("step: token ", token, " in slot ", sequence.slot,
                                                   " of a vocabulary of ", config.vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckSequences(const std::vector<StepSequence>& sequences, const ModelConfig& config,
                            const KvCache& cache) {
  std::set<int> slots;
  for (const StepSequence& sequence : sequences) {
    const int64_t end = sequence.first_position + static_cast<int64_t>(sequence.token_ids.size());
    if (sequence.slot < 0 || sequence.slot >= cache.num_slots() || !slots.insert(sequence.slot).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("step: slot ", sequence.slot, " is named twice or is not below ", cache.num_slots()));
    }
    if (sequence.first_position < 0 || end > cache.max_tokens()) {
      return absl::InvalidArgumentError(absl::StrCat("step: positions [", sequence.first_position, ", ", end,
                                                     ") of slot ", sequence.slot, " exceed its ",
                                                     cache.max_tokens(), " tokens"));
    }
    if (absl::Status status = CheckTokens(sequence, config); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

// Either the kernels' cache, or tensors [slots, max_tokens, K, h], one a layer.
struct KvCache::State {
  ModelConfig config;
  Placement placement;
  int num_slots;
  int64_t max_tokens;
  std::unique_ptr<KernelKvCache> kernels;
  std::vector<at::Tensor> keys, values;
};

KvCache::KvCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
KvCache::~KvCache() = default;
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;

int KvCache::num_slots() const { return state_->num_slots; }
int64_t KvCache::max_tokens() const { return state_->max_tokens; }
void KvCache::CopyPrefix(int from, int to, int64_t num_tokens) {
  WS_CHECK(from != to && num_tokens <= max_tokens())
      << num_tokens << " tokens of slot " << from << " to " << to;
  if (state_->kernels != nullptr) return state_->kernels->CopyPrefix(from, to, num_tokens);
  for (std::vector<at::Tensor>* const cached : {&state_->keys, &state_->values}) {
    for (at::Tensor& layer : *cached) {
      layer.select(0, to).narrow(0, 0, num_tokens).copy_(layer.select(0, from).narrow(0, 0, num_tokens));
    }
  }
}

// The weights: packed for the kernels, or as they are for the operators.
struct Decoder::State {
  at::Tensor StepOnKernels(const std::vector<StepSequence>& sequences, KernelKvCache& cache);
  at::Tensor StepOnOperators(const std::vector<StepSequence>& sequences, KvCache::State& cache);
  at::Tensor RunOnOperators(const StepSequence& sequence, KvCache::State& cache);

  ModelConfig config;
  Placement placement;
  int64_t num_token_ids;
  std::unique_ptr<DecoderKernels> kernels;
  std::optional<Parameters> parameters;
};

absl::StatusOr<Decoder> Decoder::Create(const ModelConfig& config, Backend backend, DecoderOptions options) {
  RETURN_IF_ERROR(CheckBackend(config, backend, options.placement, kDecodingKernelDtypes));
  auto state = std::make_unique<State>();
  state->config = config;
  state->placement = options.placement;
  state->num_token_ids = NumTokenIds(config, options.num_token_ids);
  if (backend == Backend::kKernels) {
    state->kernels = std::make_unique<DecoderKernels>(config, state->num_token_ids, options.pool);
  } else {
    state->parameters.emplace(ParameterLayout(config), options.placement.dtype, options.placement.device);
  }
  return Decoder(std::move(state));
}

Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

KvCache Decoder::MakeCache(int num_slots, int64_t max_tokens) const {
  const ModelConfig& c = state_->config;
  auto cache = std::make_unique<KvCache::State>();
  cache->config = c;
  cache->placement = state_->placement;
  cache->num_slots = num_slots;
  cache->max_tokens = max_tokens;
  if (state_->kernels != nullptr) {
    cache->kernels = std::make_unique<KernelKvCache>(c, num_slots, max_tokens);
    return KvCache(std::move(cache));
  }
  const at::TensorOptions options =
      at::TensorOptions(state_->placement.dtype).device(state_->placement.device);
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    cache->keys.push_back(at::zeros({num_slots, max_tokens, c.num_key_value_heads, c.head_dim}, options));
    cache->values.push_back(at::zeros_like(cache->keys.back()));
  }
  return KvCache(std::move(cache));
}

absl::Status Decoder::SetParameters(const Parameters& parameters) {
  if (parameters.config() != state_->config) {
    return absl::InvalidArgumentError("decoder: the new weights have another configuration");
  }
  if (parameters.dtype() != state_->placement.dtype || parameters.device() != state_->placement.device) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decoder: the new weights are ", c10::toString(parameters.dtype()), " on ", parameters.device().str(),
        ", but it was made for ", c10::toString(state_->placement.dtype), " on ",
        state_->placement.device.str(), ": convert them"));
  }
  if (state_->kernels == nullptr) {
    state_->parameters->CopyFrom(parameters);
    return absl::OkStatus();
  }
  std::vector<const float*> buffers;
  for (int i = 0; i < parameters.num_buffers(); ++i)
    buffers.push_back(parameters.buffer(i).const_data_ptr<float>());
  state_->kernels->SetWeights(buffers);
  return absl::OkStatus();
}

at::Tensor Decoder::State::StepOnKernels(const std::vector<StepSequence>& sequences, KernelKvCache& cache) {
  int64_t wanted = 0;
  for (const StepSequence& sequence : sequences) wanted += sequence.wants_logits ? 1 : 0;
  at::Tensor logits = at::empty({wanted, num_token_ids}, at::TensorOptions(at::kFloat));
  float* next = logits.mutable_data_ptr<float>();
  std::vector<DecoderSpan> spans;
  spans.reserve(sequences.size());
  for (const StepSequence& sequence : sequences) {
    spans.push_back({sequence.slot, sequence.first_position, sequence.token_ids.data(),
                     static_cast<int64_t>(sequence.token_ids.size()),
                     sequence.wants_logits ? next : nullptr});
    if (sequence.wants_logits) next += num_token_ids;
  }
  kernels->Run(spans, cache);
  return logits;
}

at::Tensor Decoder::State::RunOnOperators(const StepSequence& sequence, KvCache::State& cache) {
  const ParameterLayout& layout = parameters->layout();
  const int64_t count = static_cast<int64_t>(sequence.token_ids.size()),
                end = sequence.first_position + count;
  const at::TensorOptions longs = at::TensorOptions(at::kLong);
  const std::vector<int64_t> ids(sequence.token_ids.begin(), sequence.token_ids.end());
  const at::Tensor positions = at::arange(sequence.first_position, end, longs).to(parameters->device());
  at::Tensor x = OperatorEmbedding(*parameters, at::tensor(ids, longs).to(parameters->device()));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const int buffer = layout.layer_buffer(layer);
    const QueryKeyValue all = OperatorQueryKeyValue(*parameters, buffer, x, positions);
    const at::Tensor keys = cache.keys[layer].select(0, sequence.slot).narrow(0, 0, end);
    const at::Tensor values = cache.values[layer].select(0, sequence.slot).narrow(0, 0, end);
    keys.narrow(0, sequence.first_position, count).copy_(all.key);
    values.narrow(0, sequence.first_position, count).copy_(all.value);
    x = OperatorAfterAttention(*parameters, buffer, x, OperatorAttention(all.query, keys, values));
  }
  const at::Tensor norm = parameters->View(layout.final_buffer(), "norm");
  const at::Tensor last = OperatorRmsNorm(x.narrow(0, count - 1, 1), norm, config.rms_norm_eps);
  return OperatorLogits(*parameters, last).narrow(1, 0, num_token_ids);
}

at::Tensor Decoder::State::StepOnOperators(const std::vector<StepSequence>& sequences,
                                           KvCache::State& cache) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> logits;
  for (const StepSequence& sequence : sequences) {
    const at::Tensor row = RunOnOperators(sequence, cache);
    if (sequence.wants_logits) logits.push_back(row);
  }
  if (logits.empty()) return at::zeros({0, num_token_ids}, at::TensorOptions(at::kFloat));
  return at::cat(logits, 0).to(at::TensorOptions(at::kFloat).device(at::kCPU)).contiguous();
}

absl::StatusOr<at::Tensor> Decoder::Step(const std::vector<StepSequence>& sequences, KvCache& cache) {
  if (absl::Status status = CheckSequences(sequences, state_->config, cache); !status.ok()) return status;
  KvCache::State& filled = *cache.state_;
  const bool on_kernels = state_->kernels != nullptr;
  if (filled.config != state_->config || filled.placement != state_->placement ||
      on_kernels != (filled.kernels != nullptr)) {
    return absl::InvalidArgumentError(
        "step: the cache was made by a decoder of another configuration, placement or backend: take one from "
        "this decoder's MakeCache");
  }
  if (on_kernels) return state_->StepOnKernels(sequences, *filled.kernels);
  return state_->StepOnOperators(sequences, filled);
}

}  // namespace warpsmith
