#include "trainer/phases/policy_start.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/initial_seed.h"
#include "core/model/training/cpu_trainer.h"

namespace warpsmith {
namespace {

double GigaBytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// Returns what training takes with micro-batches of `num_tokens`.
TrainingMemory PlanFor(const Configuration& configuration, int64_t num_tokens, bool has_reference) {
  const ModelConfig& model = configuration.model.config;
  return PlanTrainingMemory(model,
                            {.recomputation = configuration.trainer.recomputation,
                             .tokens_max = num_tokens,
                             .sequence_tokens_max = std::min(num_tokens, model.max_position_embeddings),
                             .has_reference = has_reference,
                             .deterministic = configuration.trainer.deterministic});
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelTrainer>> MakePolicy(const Configuration& configuration,
                                                         int64_t num_token_ids, const TrainingGpu* gpu,
                                                         ThreadPool* pool) {
  const TrainerSection& trainer = configuration.trainer;
  const ModelTrainerOptions options = {
      .num_token_ids = num_token_ids,
      .optimiser = {.weight_decay = trainer.weight_decay, .gradient_norm_max = trainer.gradient_norm_max},
      .recomputation = trainer.recomputation};
  const ParameterLayout layout(configuration.model.config);
  if (gpu != nullptr) return gpu->MakeTrainer(layout, options, trainer.deterministic);
  return std::make_unique<CpuTrainer>(layout, options, pool);
}

TrainingMemory PlanMemory(const Configuration& configuration) {
  return PlanFor(configuration, configuration.trainer.micro_batch_tokens,
                 configuration.grpo.loss.kl_weight > 0);
}

std::string DescribeMemory(const TrainingMemory& plan) {
  return absl::StrFormat("%.1f GB: %.1f of weights and optimiser, %.1f of activations, %.1f of libraries",
                         GigaBytes(plan.total()), GigaBytes(plan.state), GigaBytes(plan.activations),
                         GigaBytes(plan.libraries));
}

absl::Status CheckMemory(const Configuration& configuration, const TrainingGpu& gpu) {
  const TrainingMemory plan = PlanMemory(configuration);
  ASSIGN_OR_RETURN(const int64_t free, gpu.FreeMemory());
  const std::string text = absl::StrFormat("training on GPU %d, %s, is planned to take %s; %.1f GB are free",
                                           gpu.index(), gpu.name(), DescribeMemory(plan), GigaBytes(free));
  LogInfo(text);
  if (plan.total() <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(text,
                   ": lower trainer.micro_batch_tokens, choose a trainer.recomputation that keeps less, give "
                   "a worker there a "
                   "smaller share (the end of rollout.device), or end what else uses the GPU"));
}

absl::Status CheckSequence(const Configuration& configuration, const TrainingGpu& gpu, int64_t num_tokens,
                           bool adds_reference, std::string_view what) {
  if (num_tokens <= configuration.trainer.micro_batch_tokens) return absl::OkStatus();
  const TrainingMemory plan = PlanFor(configuration, num_tokens, adds_reference);
  const int64_t held = PlanFor(configuration, num_tokens, /*has_reference=*/false).state;
  const int64_t needed = plan.activations + plan.state - held;
  ASSIGN_OR_RETURN(const int64_t free, gpu.FreeMemory());
  if (needed <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the longest sequence of %s may have %d tokens, which are planned to take "
                      "%.1f GB of GPU %d, and "
                      "%.1f GB are free: shorten it, choose a trainer.recomputation that keeps less, or give "
                      "a worker there a smaller "
                      "share (the end of rollout.device)",
                      AbslView(what), num_tokens, GigaBytes(needed), gpu.index(), GigaBytes(free)));
}

absl::Status InitialiseWeights(const ModelSection& model, ModelTrainer& policy) {
  return model.path.empty() ? policy.InitRandom(kInitialSeed) : policy.LoadHuggingFace(model.path);
}

}  // namespace warpsmith
