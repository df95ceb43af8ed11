#include "trainer/optimiser.h"

#include <cmath>

#include "core/base/check.h"
#include "core/kernels/adamw.h"

namespace warpsmith {
namespace {

double GlobalNorm(const Parameters& parameters, ThreadPool* pool) {
  double sum = 0;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    const at::Tensor& gradient = parameters.buffer(index).grad();
    WS_CHECK(gradient.defined() && gradient.is_contiguous()) << "buffer " << index << " has no gradient";
    sum += SumOfSquares(gradient.numel(), gradient.const_data_ptr<float>(), pool);
  }
  return std::sqrt(sum);
}

}  // namespace

Optimiser::Optimiser(const ParameterLayout& layout, const OptimiserOptions& options, ThreadPool* pool)
    : options_(options), pool_(pool), first_moment_(layout), second_moment_(layout) {}

double Optimiser::Step(Parameters& parameters, double learning_rate) {
  const double norm = GlobalNorm(parameters, pool_);
  if (std::isfinite(norm)) {
    ++num_steps_;
    const double scale = norm > options_.gradient_norm_max ? options_.gradient_norm_max / norm : 1.0;
    for (int index = 0; index < parameters.num_buffers(); ++index) {
      UpdateBuffer(parameters, index, learning_rate, scale);
    }
  }
  parameters.ZeroGrad();
  return norm;
}

void Optimiser::Reset() {
  num_steps_ = 0;
  for (int index = 0; index < first_moment_.num_buffers(); ++index) {
    first_moment_.buffer(index).zero_();
    second_moment_.buffer(index).zero_();
  }
}

void Optimiser::UpdateBuffer(Parameters& parameters, int index, double learning_rate, double gradient_scale) {
  AdamWOptions options{.learning_rate = static_cast<float>(learning_rate),
                       .beta1 = static_cast<float>(options_.beta1),
                       .beta2 = static_cast<float>(options_.beta2),
                       .epsilon = static_cast<float>(options_.epsilon),
                       .gradient_scale = static_cast<float>(gradient_scale),
                       .step = num_steps_};
  const float* gradient = parameters.buffer(index).grad().const_data_ptr<float>();
  float* values = parameters.buffer(index).mutable_data_ptr<float>();
  float* first = first_moment_.buffer(index).mutable_data_ptr<float>();
  float* second = second_moment_.buffer(index).mutable_data_ptr<float>();
  for (const ParameterEntry& entry : parameters.layout().buffers()[index].entries) {
    options.weight_decay = entry.decays ? static_cast<float>(options_.weight_decay) : 0.0f;
    const int64_t at = entry.offset;
    AdamWStep(options, entry.size(), gradient + at, values + at, first + at, second + at, pool_);
  }
}

}  // namespace warpsmith
