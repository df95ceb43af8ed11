// The Coder under training: weights, the model that computes with them, the optimiser that changes them.
#ifndef WARPSMITH_TRAINER_UPDATE_POLICY_H_
#define WARPSMITH_TRAINER_UPDATE_POLICY_H_

#include <optional>

#include "core/kernels/thread_pool.h"
#include "core/model/parameters.h"
#include "core/model/training/training_model.h"
#include "trainer/update/optimiser.h"

namespace warpsmith {

// Every rank has the same. One thread at a time.
struct Policy {
  // Zero weights; `pool` outlives this. Weights and moments are float32 on the CPU. Passes are computed in float32 on
  // `device`: by kernels on a CPU, by Torch's operators on a GPU. `num_token_ids`: what the tokenizer has, as
  // TrainingModelOptions says.
  Policy(const ParameterLayout& layout, int64_t num_token_ids, const OptimiserOptions& options,
         ThreadPool* pool, at::Device device = at::kCPU)
      : parameters(layout),
        model(*TrainingModel::Create(
            layout.config(), device.is_cpu() ? Backend::kKernels : Backend::kOperators,
            {.placement = {.device = device}, .pool = pool, .num_token_ids = num_token_ids})),
        optimiser(layout, options, pool) {
    parameters.RequireGrad(true);
  }

  Parameters parameters;
  TrainingModel model;
  Optimiser optimiser;
  std::optional<Parameters> reference;  // what the KL term pulls towards; absent when that has no weight
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_POLICY_H_
