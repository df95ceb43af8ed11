// AdamW, or Muon and AdamW, over the flat buffers of a model: what an update is told, and the CPU's form of it.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_OPTIMISER_H_
#define WARPSMITH_CORE_MODEL_TRAINING_OPTIMISER_H_

#include <cstdint>
#include <vector>

#include "core/kernels/adamw.h"
#include "core/kernels/muon.h"
#include "core/kernels/thread_pool.h"
#include "core/model/parameters.h"
#include "core/model/training/matrix_update.h"

namespace warpsmith {

struct OptimiserOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.95;          // of Muon
  double weight_decay = 0.0;       // of matrices; norms take none
  double gradient_norm_max = 1.0;  // larger gradients are scaled down to it
};

// One update of all weights.
struct OptimiserStep {
  double learning_rate = 0;
  double gradient_scale = 1;  // the factor of clipping
  int64_t step = 1;           // counts from 1: AdamW's bias correction
  MatrixUpdate matrices = MatrixUpdate::kAdamW;
};

// Returns what AdamW is told for an entry of the buffers.
AdamWOptions AdamWOf(const OptimiserOptions& options, const OptimiserStep& step, bool decays);

// The moments, and the update on the CPU. Moments are Parameters of the same layout, float32. One thread at a time.
class Optimiser {
 public:
  // `pool` outlives the optimiser; null: the calling thread alone. The result does not depend on it.
  Optimiser(const ParameterLayout& layout, const OptimiserOptions& options, ThreadPool* pool);

  // Updates `parameters` in place by their gradients. REQUIRES: every buffer has one. Matrices keep to one kind of
  // update while the moments stand: both kinds use the first moment.
  void Update(Parameters& parameters, const OptimiserStep& step);

  Parameters& first_moment() { return first_moment_; }
  Parameters& second_moment() { return second_moment_; }

 private:
  void UpdateBuffer(Parameters& parameters, int index, const OptimiserStep& step);
  // Applies Muon to a matrix of a checkpoint, which may lie in the buffer in several parts.
  void UpdateMatrix(const MuonOptions& options, const HfTensorLayout& matrix, const float* gradient,
                    float* values, float* moment);

  const OptimiserOptions options_;
  ThreadPool* const pool_;
  Parameters first_moment_;
  Parameters second_moment_;
  std::vector<float> scratch_;
  std::vector<float> matrix_;  // gradient, values and moment of one that lies in parts
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_OPTIMISER_H_
