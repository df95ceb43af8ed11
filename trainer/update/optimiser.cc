#include "trainer/update/optimiser.h"

#include <algorithm>
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

double Optimiser::Step(Parameters& parameters, double learning_rate, MatrixUpdate matrices) {
  const double norm = GlobalNorm(parameters, pool_);
  if (std::isfinite(norm)) {
    ++num_steps_;
    const double scale = norm > options_.gradient_norm_max ? options_.gradient_norm_max / norm : 1.0;
    for (int index = 0; index < parameters.num_buffers(); ++index) {
      UpdateBuffer(parameters, index, learning_rate, scale, matrices);
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

void Optimiser::UpdateBuffer(Parameters& parameters, int index, double learning_rate, double gradient_scale,
                             MatrixUpdate matrices) {
  AdamWOptions adamw{.learning_rate = static_cast<float>(learning_rate),
                     .beta1 = static_cast<float>(options_.beta1),
                     .beta2 = static_cast<float>(options_.beta2),
                     .epsilon = static_cast<float>(options_.epsilon),
                     .gradient_scale = static_cast<float>(gradient_scale),
                     .step = num_steps_};
  const MuonOptions muon{.learning_rate = static_cast<float>(learning_rate),
                         .momentum = static_cast<float>(options_.momentum),
                         .weight_decay = static_cast<float>(options_.weight_decay),
                         .gradient_scale = static_cast<float>(gradient_scale)};
  const ParameterLayout& layout = parameters.layout();
  const bool in_layer = index != layout.embedding_buffer() && index != layout.final_buffer();
  const bool by_muon = matrices == MatrixUpdate::kMuon && in_layer;
  const float* gradient = parameters.buffer(index).grad().const_data_ptr<float>();
  float* values = parameters.buffer(index).mutable_data_ptr<float>();
  float* first = first_moment_.buffer(index).mutable_data_ptr<float>();
  float* second = second_moment_.buffer(index).mutable_data_ptr<float>();
  for (const ParameterEntry& entry : layout.buffers()[index].entries) {
    const int64_t at = entry.offset;
    if (by_muon && entry.shape.size() == 2) continue;
    adamw.weight_decay = entry.decays ? static_cast<float>(options_.weight_decay) : 0.0f;
    AdamWStep(adamw, entry.size(), gradient + at, values + at, first + at, second + at, pool_);
  }
  if (!by_muon) return;
  for (const HfTensorLayout& tensor : layout.hf_tensors()) {
    if (tensor.buffer == index && tensor.shape.size() == 2)
      UpdateMatrix(muon, tensor, gradient, values, first);
  }
}

void Optimiser::UpdateMatrix(const MuonOptions& options, const HfTensorLayout& matrix, const float* gradient,
                             float* values, float* moment) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1], size = rows * columns;
  if (matrix.runs.size() == 1) {
    const int64_t at = matrix.runs[0].buffer_offset;
    return MuonStep(options, rows, columns, gradient + at, values + at, moment + at, &scratch_, pool_);
  }
  matrix_.resize(3 * static_cast<size_t>(size));
  float *own_gradient = matrix_.data(), *own_values = own_gradient + size, *own_moment = own_values + size;
  for (const CopyRun& run : matrix.runs) {
    std::copy_n(gradient + run.buffer_offset, run.length, own_gradient + run.hf_offset);
    std::copy_n(values + run.buffer_offset, run.length, own_values + run.hf_offset);
    std::copy_n(moment + run.buffer_offset, run.length, own_moment + run.hf_offset);
  }
  MuonStep(options, rows, columns, own_gradient, own_values, own_moment, &scratch_, pool_);
  for (const CopyRun& run : matrix.runs) {
    std::copy_n(own_values + run.hf_offset, run.length, values + run.buffer_offset);
    std::copy_n(own_moment + run.hf_offset, run.length, moment + run.buffer_offset);
  }
}

}  // namespace warpsmith
