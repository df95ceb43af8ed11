// The model that a run trains, at its beginning.
#ifndef WARPSMITH_TRAINER_PHASES_POLICY_START_H_
#define WARPSMITH_TRAINER_PHASES_POLICY_START_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernels/thread_pool.h"
#include "core/model/training/model_trainer.h"
#include "core/model/training/training_cost.h"
#include "trainer/configuration.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {

// Makes the model of zeros that a run trains, on `gpu`, or where that is null on the CPU with the threads of `pool`,
// which outlives it. `num_token_ids`: what the tokenizer has. The errors of TrainingGpu::MakeTrainer.
absl::StatusOr<std::unique_ptr<ModelTrainer>> MakePolicy(const Configuration& configuration,
                                                         int64_t num_token_ids, const TrainingGpu* gpu,
                                                         ThreadPool* pool);

// Returns what training takes of a GPU's memory, micro-batches as large as trainer.micro_batch_tokens allows.
TrainingMemory PlanMemory(const Configuration& configuration);
// Returns the plan in a line: "12.3 GB: 1.0 of weights and optimiser, 10.5 of activations, 0.8 of libraries".
std::string DescribeMemory(const TrainingMemory& plan);
// Checks that `gpu` has room for the plan, and logs both. RESOURCE_EXHAUSTED with the plan and the way out.
absl::Status CheckMemory(const Configuration& configuration, const TrainingGpu& gpu);

// Checks that a pass over one sequence of `num_tokens`, the longest of `what`, has room beside what the policy holds
// already, and a reference where `adds_reference`; the plan has those of up to trainer.micro_batch_tokens.
// RESOURCE_EXHAUSTED with the plan and the way out.
absl::Status CheckSequence(const Configuration& configuration, const TrainingGpu& gpu, int64_t num_tokens,
                           bool adds_reference, std::string_view what);

// Gives `policy` the weights of model.path, or random ones where there is none. The errors of
// ModelTrainer::LoadHuggingFace.
absl::Status InitialiseWeights(const ModelSection& model, ModelTrainer& policy);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_POLICY_START_H_
