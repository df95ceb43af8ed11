#include "core/model/training/optimiser.h"

#include <algorithm>

#include "core/base/check.h"

namespace warpsmith {

AdamWOptions AdamWOf(const OptimiserOptions& options, const OptimiserStep& step, bool decays) {
  return {.learning_rate = static_cast<float>(step.learning_rate),
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = decays ? static_cast<float>(options.weight_decay) : 0.0f,
          .gradient_scale = static_cast<float>(step.gradient_scale),
          .step = step.step};
}

Optimiser::Optimiser(const ParameterLayout& layout, const OptimiserOptions& options, ThreadPool* pool)
    : options_(options), pool_(pool), first_moment_(layout), second_moment_(layout) {}

void Optimiser::Update(Parameters& parameters, const OptimiserStep& step) {
  for (int index = 0; index < parameters.num_buffers(); ++index) UpdateBuffer(parameters, index, step);
}

void Optimiser::UpdateBuffer(Parameters& parameters, int index, const OptimiserStep& step) {
  const at::Tensor& gradients = parameters.buffer(index).grad();
  WS_CHECK(gradients.defined() && gradients.is_contiguous()) << "buffer " << index << " has no gradient";
  const MuonOptions muon{.learning_rate = static_cast<float>(step.learning_rate),
                         .momentum = static_cast<float>(options_.momentum),
                         .weight_decay = static_cast<float>(options_.weight_decay),
                         .gradient_scale = static_cast<float>(step.gradient_scale)};
  const ParameterLayout& layout = parameters.layout();
  const bool in_layer = index != layout.embedding_buffer() && index != layout.final_buffer();
  const bool by_muon = step.matrices == MatrixUpdate::kMuon && in_layer;
  const float* gradient = gradients.const_data_ptr<float>();
  float* values = parameters.buffer(index).mutable_data_ptr<float>();
  float* first = first_moment_.buffer(index).mutable_data_ptr<float>();
  float* second = second_moment_.buffer(index).mutable_data_ptr<float>();
  for (const ParameterEntry& entry : layout.buffers()[index].entries) {
    const int64_t at = entry.offset;
    if (by_muon && entry.shape.size() == 2) continue;
    AdamWStep(AdamWOf(options_, step, entry.decays), entry.size(), gradient + at, values + at, first + at,
              second + at, pool_);
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
