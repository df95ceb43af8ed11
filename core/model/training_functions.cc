#include "core/model/training_functions.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace warpsmith {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kBlockRows = 48;  // rows a task

// What a function keeps for backward besides tensors.
template <typename Kept>
struct Holder : torch::CustomClassHolder {
  explicit Holder(Kept kept) : kept(std::move(kept)) {}
  Kept kept;
};

template <typename Kept>
void Keep(AutogradContext* context, Kept kept) {
  context->saved_data["kept"] = c10::IValue::make_capsule(c10::make_intrusive<Holder<Kept>>(std::move(kept)));
}

template <typename Kept>
Kept& KeptBy(AutogradContext* context) {
  return static_cast<Holder<Kept>*>(context->saved_data["kept"].toCapsule().get())->kept;
}

// A tensor of `sizes` in the core's memory, which it returns to when it is destroyed.
template <typename A>
at::Tensor Pooled(const TrainingCore<A>& core, at::IntArrayRef sizes) {
  size_t bytes = sizeof(A);
  for (int64_t extent : sizes) bytes *= extent;
  auto block = std::make_shared<ActivationPool::Block>(ActivationPool::Take(core.memory, bytes));
  void* data = block->get();
  return at::from_blob(
      data, sizes, [block](void*) { block->reset(); }, at::CppTypeToScalarType<A>::value);
}

template <typename A>
at::Tensor PooledZeros(const TrainingCore<A>& core, at::IntArrayRef sizes) {
  at::Tensor x = Pooled(core, sizes);
  std::memset(x.mutable_data_ptr(), 0, x.nbytes());
  return x;
}

template <typename A>
struct EmbeddingFunction : Function<EmbeddingFunction<A>> {
  struct Kept {
    TrainingCorePointer<A> core;
    BatchPointer batch;
    at::Tensor like;
  };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& flat, TrainingCorePointer<A> core,
                            BatchPointer batch) {
    const int64_t d = core->layout.config().hidden_size, v = core->layout.config().vocab_size;
    at::Tensor x = Pooled(*core, {batch->num_tokens(), d});
    const A* table = flat.const_data_ptr<A>();
    A* out = x.mutable_data_ptr<A>();
    for (int64_t t = 0; t < batch->num_tokens(); ++t) {
      const int64_t token = batch->tokens[t];
      WS_CHECK(token >= 0 && token < v) << "token " << token << " of a vocabulary of " << v;
      std::copy_n(table + token * d, d, out + t * d);
    }
    Keep(context, Kept{core, batch, flat.detach()});
    return x;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const Kept& kept = KeptBy<Kept>(context);
    const int64_t d = kept.core->layout.config().hidden_size;
    const at::Tensor x_grad = grads[0].contiguous();
    at::Tensor flat_grad = PooledZeros(*kept.core, kept.like.sizes());
    A* out = flat_grad.mutable_data_ptr<A>();
    for (int64_t t = 0; t < kept.batch->num_tokens(); ++t) {
      Kernels<A>().add(x_grad.const_data_ptr<A>() + t * d, d, out + kept.batch->tokens[t] * d);
    }
    return {flat_grad, at::Tensor(), at::Tensor()};
  }
};

template <typename A>
struct LayerFunction : Function<LayerFunction<A>> {
  struct Kept {
    TrainingCorePointer<A> core;
    BatchPointer batch;
    ActivationPool::Block activations;
  };

  static LayerActivations<A> Activations(const Kept& kept) {
    return LayerActivations<A>::Bind(kept.core->layout.config(), kept.batch->num_tokens(),
                                     static_cast<A*>(kept.activations.get()));
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& flat,
                            TrainingCorePointer<A> core, BatchPointer batch) {
    const size_t bytes = LayerActivations<A>::Size(core->layout.config(), batch->num_tokens()) * sizeof(A);
    Kept kept{core, batch, ActivationPool::Take(core->memory, bytes)};
    at::Tensor y = Pooled(*core, x.sizes());
    core->layer.Forward(flat.const_data_ptr<A>(), *batch, x.const_data_ptr<A>(), Activations(kept),
                        y.mutable_data_ptr<A>());
    context->save_for_backward({x, flat});
    Keep(context, std::move(kept));
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Kept& kept = KeptBy<Kept>(context);
    WS_CHECK(kept.activations != nullptr) << "second backward pass through one graph";
    const variable_list saved = context->get_saved_variables();
    const at::Tensor y_grad = grads[0].contiguous();
    at::Tensor x_grad = Pooled(*kept.core, saved[0].sizes());
    at::Tensor flat_grad = PooledZeros(*kept.core, saved[1].sizes());
    kept.core->layer.Backward(saved[1].const_data_ptr<A>(), *kept.batch, saved[0].const_data_ptr<A>(),
                              Activations(kept), y_grad.const_data_ptr<A>(), x_grad.mutable_data_ptr<A>(),
                              flat_grad.mutable_data_ptr<A>());
    kept.activations.reset();
    return {x_grad, flat_grad, at::Tensor(), at::Tensor()};
  }
};

template <typename A>
struct FinalNormFunction : Function<FinalNormFunction<A>> {
  static const A* Weight(const TrainingCore<A>& core, const at::Tensor& flat) {
    return flat.const_data_ptr<A>() + core.layout.entry(core.layout.final_buffer(), "norm").offset;
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& flat,
                            TrainingCorePointer<A> core) {
    const int64_t d = x.size(1), rows = x.size(0);
    const A eps = static_cast<A>(core->layout.config().rms_norm_eps);
    at::Tensor y = Pooled(*core, x.sizes());
    const A* weight = Weight(*core, flat);
    const A* from = x.const_data_ptr<A>();
    A* to = y.mutable_data_ptr<A>();
    for (int64_t r = 0; r < rows; ++r) Kernels<A>().rms_norm(from + r * d, weight, d, eps, to + r * d);
    context->save_for_backward({x, flat});
    Keep(context, core);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const TrainingCore<A>& core = *KeptBy<TrainingCorePointer<A>>(context);
    const variable_list saved = context->get_saved_variables();
    const int64_t d = saved[0].size(1), rows = saved[0].size(0);
    const A eps = static_cast<A>(core.layout.config().rms_norm_eps);
    const at::Tensor y_grad = grads[0].contiguous();
    at::Tensor x_grad = PooledZeros(core, saved[0].sizes()), flat_grad = PooledZeros(core, saved[1].sizes());
    const A* weight = Weight(core, saved[1]);
    const A* x = saved[0].const_data_ptr<A>();
    const A* dy = y_grad.const_data_ptr<A>();
    A* dx = x_grad.mutable_data_ptr<A>();
    A* dw = flat_grad.mutable_data_ptr<A>() + core.layout.entry(core.layout.final_buffer(), "norm").offset;
    for (int64_t r = 0; r < rows; ++r) {
      Kernels<A>().rms_norm_gradient(x + r * d, weight, dy + r * d, d, eps, dx + r * d, dw);
    }
    return {x_grad, flat_grad, at::Tensor()};
  }
};

template <typename A>
struct ScoringFunction : Function<ScoringFunction<A>> {
  struct Kept {
    TrainingCorePointer<A> core;
    ScoringInput<A> input;
    std::vector<A> log_sum_exp;
    int64_t head_offset;
  };

  static ScoringInput<A> Input(const TrainingCore<A>& core, const at::Tensor& hidden, const at::Tensor& flat,
                               int64_t head_offset, const std::vector<int64_t>& targets, double temperature) {
    const ModelConfig& c = core.layout.config();
    ScoringInput<A> input{flat.const_data_ptr<A>() + head_offset,
                          core.num_token_ids,
                          c.hidden_size,
                          hidden.const_data_ptr<A>(),
                          {},
                          {},
                          static_cast<A>(temperature)};
    for (int64_t i = 0; i < hidden.size(0); ++i) {
      if (targets[i] < 0) continue;
      WS_CHECK(targets[i] < core.num_token_ids)
          << "target " << targets[i] << " of a vocabulary of " << core.num_token_ids;
      input.rows.push_back(i);
      input.targets.push_back(targets[i]);
    }
    return input;
  }

  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& flat,
                               TrainingCorePointer<A> core, int64_t head_offset,
                               const std::vector<int64_t>& targets, double temperature) {
    Kept kept{core, Input(*core, hidden, flat, head_offset, targets, temperature), {}, head_offset};
    kept.log_sum_exp.resize(kept.input.rows.size());
    at::Tensor log_probs = PooledZeros(*core, {hidden.size(0)}),
               entropy = PooledZeros(*core, {hidden.size(0)});
    core->scoring.Forward(kept.input, log_probs.mutable_data_ptr<A>(), entropy.mutable_data_ptr<A>(),
                          kept.log_sum_exp.data());
    context->save_for_backward({hidden, flat});
    context->mark_non_differentiable({entropy});
    Keep(context, std::move(kept));
    return {log_probs, entropy};
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Kept& kept = KeptBy<Kept>(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor log_prob_grad = grads[0].contiguous();
    at::Tensor hidden_grad = PooledZeros(*kept.core, saved[0].sizes());
    at::Tensor flat_grad = PooledZeros(*kept.core, saved[1].sizes());
    kept.core->scoring.Backward(kept.input, kept.log_sum_exp.data(), log_prob_grad.const_data_ptr<A>(),
                                hidden_grad.mutable_data_ptr<A>(),
                                flat_grad.mutable_data_ptr<A>() + kept.head_offset);
    return {hidden_grad, flat_grad, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

template <typename A>
at::Tensor ApplyEmbedding(const TrainingCorePointer<A>& core, const BatchPointer& batch,
                          const at::Tensor& flat) {
  return EmbeddingFunction<A>::apply(flat, core, batch);
}

template <typename A>
at::Tensor ApplyLayer(const TrainingCorePointer<A>& core, const BatchPointer& batch, const at::Tensor& x,
                      const at::Tensor& flat) {
  return LayerFunction<A>::apply(x, flat, core, batch);
}

template <typename A>
at::Tensor ApplyFinalNorm(const TrainingCorePointer<A>& core, const at::Tensor& x, const at::Tensor& flat) {
  return FinalNormFunction<A>::apply(x, flat, core);
}

template <typename A>
std::vector<at::Tensor> ApplyScoring(const TrainingCorePointer<A>& core, const at::Tensor& hidden,
                                     const at::Tensor& flat, int64_t head_offset,
                                     const std::vector<int64_t>& targets, double temperature) {
  return ScoringFunction<A>::apply(hidden.contiguous(), flat, core, head_offset, targets, temperature);
}

template at::Tensor ApplyEmbedding(const TrainingCorePointer<float>&, const BatchPointer&, const at::Tensor&);
template at::Tensor ApplyEmbedding(const TrainingCorePointer<double>&, const BatchPointer&,
                                   const at::Tensor&);
template at::Tensor ApplyLayer(const TrainingCorePointer<float>&, const BatchPointer&, const at::Tensor&,
                               const at::Tensor&);
template at::Tensor ApplyLayer(const TrainingCorePointer<double>&, const BatchPointer&, const at::Tensor&,
                               const at::Tensor&);
template at::Tensor ApplyFinalNorm(const TrainingCorePointer<float>&, const at::Tensor&, const at::Tensor&);
template at::Tensor ApplyFinalNorm(const TrainingCorePointer<double>&, const at::Tensor&, const at::Tensor&);
template std::vector<at::Tensor> ApplyScoring(const TrainingCorePointer<float>&, const at::Tensor&,
                                              const at::Tensor&, int64_t, const std::vector<int64_t>&,
                                              double);
template std::vector<at::Tensor> ApplyScoring(const TrainingCorePointer<double>&, const at::Tensor&,
                                              const at::Tensor&, int64_t, const std::vector<int64_t>&,
                                              double);

}  // namespace warpsmith
