// AdamW, or Muon and AdamW, over the flat buffers of a model.
#ifndef WARPSMITH_TRAINER_UPDATE_OPTIMISER_H_
#define WARPSMITH_TRAINER_UPDATE_OPTIMISER_H_

#include <cstdint>
#include <vector>

#include "core/kernels/muon.h"
#include "core/kernels/thread_pool.h"
#include "core/model/parameters.h"
#include "trainer/update/matrix_update.h"

namespace warpsmith {

struct OptimiserOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.95;          // of Muon
  double weight_decay = 0.0;       // of matrices; norms take none
  double gradient_norm_max = 1.0;  // larger gradients are scaled down to it
};

// Moments are Parameters of the same layout, so that they are saved and restored as weights are. float32,
// CPU. One thread at a time.
class Optimiser {
 public:
  // `pool` outlives the optimiser; null: the calling thread alone. The result does not depend on it.
  Optimiser(const ParameterLayout& layout, const OptimiserOptions& options, ThreadPool* pool);

  // Clips the gradients by their global norm, updates `parameters` in place and forgets the gradients. Every
  // buffer must have one. Returns the norm before clipping; when that is not finite nothing is changed but
  // the gradients. Matrices keep to one kind of update between two resets: they share the first moment.
  double Step(Parameters& parameters, double learning_rate, MatrixUpdate matrices = MatrixUpdate::kAdamW);

  // As new: no moments, no steps.
  void Reset();

  int64_t num_steps() const { return num_steps_; }
  const Parameters& first_moment() const { return first_moment_; }
  const Parameters& second_moment() const { return second_moment_; }

  // For restoring: the moments are written in place, through CopyFrom or SetBufferBytes.
  void set_num_steps(int64_t num_steps) { num_steps_ = num_steps; }
  Parameters& mutable_first_moment() { return first_moment_; }
  Parameters& mutable_second_moment() { return second_moment_; }

 private:
  void UpdateBuffer(Parameters& parameters, int index, double learning_rate, double gradient_scale,
                    MatrixUpdate matrices);
  // Applies Muon to a matrix of a checkpoint, which may lie in the buffer in several parts.
  void UpdateMatrix(const MuonOptions& options, const HfTensorLayout& matrix, const float* gradient,
                    float* values, float* moment);

  const OptimiserOptions options_;
  ThreadPool* const pool_;
  int64_t num_steps_ = 0;
  Parameters first_moment_;
  Parameters second_moment_;
  std::vector<float> scratch_;
  std::vector<float> matrix_;  // gradient, values and moment of one that lies in parts
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_OPTIMISER_H_
