// A model in training, on one device: its weights, what an optimiser keeps of them, and the passes between two updates.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_MODEL_TRAINER_H_
#define WARPSMITH_CORE_MODEL_TRAINING_MODEL_TRAINER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/model/offered_memory.h"
#include "core/model/parameters.h"
#include "core/model/training/optimiser.h"
#include "core/model/training/recomputation.h"
#include "core/model/training/training_pass.h"

namespace warpsmith {

struct ModelTrainerOptions {
  // Ids that the tokenizer has, at most vocab_size; 0: vocab_size. Rows of the head behind them are padding: in no
  // softmax, without a gradient.
  int64_t num_token_ids = 0;
  OptimiserOptions optimiser;
  Recomputation recomputation = Recomputation::kNone;
};

// The weights of a pass: those in training, or those that KeepReference kept.
enum class PassWeights { kPresent, kReference };

// Names the parts of a checkpoint: flat buffers of the layout, in float32 whatever the device stores.
enum class StateSet { kWeights, kFirstMoment, kSecondMoment, kReference };

// Returns the name of the set's file in a checkpoint.
constexpr std::string_view NameOf(StateSet set) {
  constexpr std::string_view kNames[] = {"weights", "first_moment", "second_moment", "reference"};
  return kNames[static_cast<int>(set)];
}

// One thread at a time. After an error of a pass or a step, all but Read is undefined. Weights and moments begin as
// zeros.
class ModelTrainer {
 public:
  ModelTrainer(const ParameterLayout& layout, const ModelTrainerOptions& options)
      : layout_(layout), options_(options) {}
  virtual ~ModelTrainer() = default;
  ModelTrainer(const ModelTrainer&) = delete;
  ModelTrainer& operator=(const ModelTrainer&) = delete;

  const ParameterLayout& layout() const { return layout_; }

  // Returns the scores of `batch`. The errors of ScoreBatch, here and in Accumulate.
  virtual absl::StatusOr<RowScores> Score(PassWeights weights, const ScoredBatch& batch) = 0;
  // Adds the gradient of a loss over `batch` to the sums that the next step takes; see AccumulateGradient.
  virtual absl::Status Accumulate(const ScoredBatch& batch, LossGradient loss) = 0;
  // Calls `visit` with the sums of each buffer, a flat tensor that it may change, in the order of the layout; ends at
  // its first error. UNIMPLEMENTED on a GPU.
  virtual absl::Status VisitGradients(absl::FunctionRef<absl::Status(at::Tensor&)> visit) = 0;

  // Scales the gradient down to gradient_norm_max, updates the weights and clears the sums. Returns the norm before.
  // A norm that is not finite leaves weights, moments and num_steps as they are.
  absl::StatusOr<double> Step(double learning_rate, MatrixUpdate matrices = MatrixUpdate::kAdamW);
  // Updates since the moments were zeros.
  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t num_steps) { num_steps_ = num_steps; }
  // Forgets the moments and the number of steps.
  absl::Status ResetOptimiser();

  // Copies elements from `first` on of buffer `buffer` to or from the host. REQUIRES: they lie within the buffer, and
  // the set exists (KeepReference for kReference). What is written is rounded to what the device stores.
  virtual absl::Status Read(StateSet set, int buffer, int64_t first, absl::Span<float> values) = 0;
  virtual absl::Status Write(StateSet set, int buffer, int64_t first, absl::Span<const float> values) = 0;
  // Gives the model the weights of a Hugging Face folder: see LoadHuggingFaceWeights.
  virtual absl::Status LoadHuggingFace(const std::filesystem::path& directory) = 0;
  // Gives the model those of Parameters::InitRandom.
  virtual absl::Status InitRandom(uint64_t seed) = 0;
  // Writes all weights. REQUIRES: `weights` are float32 on the CPU, of the same layout.
  absl::Status SetWeights(const Parameters& weights);
  // Returns the weights on the host, float32. Of a trainer on the CPU they are its own: what is written there changes
  // the model. Of a GPU they are a copy.
  virtual absl::StatusOr<Parameters> HostWeights() = 0;

  // Makes a copy of the present weights the reference.
  virtual absl::Status KeepReference() = 0;
  virtual bool has_reference() const = 0;

  // Returns whether Offer can be called.
  virtual bool can_offer() const { return false; }
  // Hands the present weights, in bfloat16, to the processes of this host that connect to `socket_path`, which this
  // makes. They can be fetched until weights are changed or offered again. UNIMPLEMENTED on the CPU; the errors of
  // SharedWeights::Offer.
  virtual absl::StatusOr<OfferedMemory> Offer(uint64_t version, const std::filesystem::path& socket_path,
                                              absl::Time deadline);

 protected:
  const ModelTrainerOptions& options() const { return options_; }

 private:
  virtual absl::StatusOr<double> GradientNorm() = 0;
  // Updates all weights and clears the sums of gradients.
  virtual absl::Status Update(const OptimiserStep& step) = 0;
  virtual absl::Status ClearGradients() = 0;
  virtual absl::Status ClearMoments() = 0;

  const ParameterLayout layout_;
  const ModelTrainerOptions options_;
  int64_t num_steps_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_MODEL_TRAINER_H_
