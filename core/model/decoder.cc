#include "core/model/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
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

bool HasKernels(at::Device device, at::ScalarType dtype) { return device.is_cpu() && dtype == at::kFloat; }

}  // namespace

// Either the kernels' cache, or tensors [slots, max_tokens, K, h], one a layer.
struct KvCache::State {
  int num_slots;
  int64_t max_tokens;
  std::unique_ptr<KernelKvCache> kernels;
  std::vector<at::Tensor> keys, values;
};

KvCache::KvCache(const ModelConfig& config, int num_slots, int64_t max_tokens, at::ScalarType dtype,
                 at::Device device)
    : state_(std::make_unique<State>()) {
  state_->num_slots = num_slots;
  state_->max_tokens = max_tokens;
  if (HasKernels(device, dtype)) {
    state_->kernels = std::make_unique<KernelKvCache>(config, num_slots, max_tokens);
    return;
  }
  const at::TensorOptions options = at::TensorOptions(dtype).device(device);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    state_->keys.push_back(
        at::zeros({num_slots, max_tokens, config.num_key_value_heads, config.head_dim}, options));
    state_->values.push_back(at::zeros_like(state_->keys.back()));
  }
}
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
int64_t KvCache::SizeBytes(const ModelConfig& config, int num_slots, int64_t max_tokens) {
  return KernelKvCache::SizeBytes(config, num_slots, max_tokens);
}

struct Decoder::State {
  State(const ModelConfig& config, DecoderOptions options)
      : config(config), options(options), num_token_ids(NumTokenIds(config, options.num_token_ids)) {}

  at::Tensor StepOnKernels(const std::vector<StepSequence>& sequences, KernelKvCache& cache);
  at::Tensor StepOnOperators(const std::vector<StepSequence>& sequences, KvCache::State& cache);
  at::Tensor RunOnOperators(const StepSequence& sequence, KvCache::State& cache);

  const ModelConfig config;
  const DecoderOptions options;
  const int64_t num_token_ids;
  std::unique_ptr<DecoderKernels> kernels;  // float32 on a CPU
  std::optional<Parameters> parameters;     // elsewhere
};

Decoder::Decoder(const ModelConfig& config, DecoderOptions options)
    : state_(std::make_unique<State>(config, options)) {
  state_->kernels = std::make_unique<DecoderKernels>(config, state_->num_token_ids, options.pool);
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

absl::Status Decoder::SetParameters(const Parameters& parameters) {
  if (parameters.config() != state_->config) {
    return absl::InvalidArgumentError("decoder: the new weights have another configuration");
  }
  if (!HasKernels(parameters.device(), parameters.dtype())) {
    state_->parameters = parameters.Clone(parameters.dtype());
    state_->kernels = nullptr;
    return absl::OkStatus();
  }
  state_->parameters.reset();
  if (state_->kernels == nullptr) {
    state_->kernels =
        std::make_unique<DecoderKernels>(state_->config, state_->num_token_ids, state_->options.pool);
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
  return at::linear(OperatorRmsNorm(x.narrow(0, count - 1, 1), norm, config.rms_norm_eps),
                    HeadWeight(*parameters).narrow(0, 0, num_token_ids));
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
  const bool on_kernels = state_->kernels != nullptr;
  if (on_kernels != (cache.state().kernels != nullptr)) {
    return absl::InvalidArgumentError("step: the cache has another dtype or device than the weights");
  }
  if (on_kernels) return state_->StepOnKernels(sequences, *cache.state().kernels);
  return state_->StepOnOperators(sequences, cache.state());
}

}  // namespace warpsmith
