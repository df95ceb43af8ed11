// Forward and backward passes over training sequences, with the loss left to the caller.
#ifndef WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_
#define WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/model/training/training_model.h"
#include "trainer/data/training_sequence.h"
#include "trainer/update/batching.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {

// An answer token after the forward pass.
struct ScoredToken {
  int sequence = 0;  // index into the sequences
  int position = 0;  // among its answer tokens
  double log_prob = 0;
  double entropy = 0;  // of the distribution it was drawn from, in nats
};

// d loss / d log_prob of a token. Called once for each answer token, by sequence, then position.
using TokenGradient = absl::FunctionRef<double(const ScoredToken&)>;

struct PassOptions {
  double temperature = 1.0;           // log-probabilities are log softmax(logits / temperature)
  int64_t micro_batch_tokens = 4096;  // prompt and answer tokens that are in memory at once
  TrainingGpu* gpu = nullptr;         // computes the pass in a turn of its own; null: the CPU does
};

// Adds the gradient of the loss over sequences `indices` to the .grad of the parameters' buffers. The sum
// does not depend on micro_batch_tokens but for rounding. `parameters` are on the CPU; a pass on a GPU copies
// them there, and their gradient back. REQUIRES: `model` is placed where `options` compute. INTERNAL when
// LibTorch fails, with its message; RESOURCE_EXHAUSTED when the GPU's memory is too small, with the way out;
// the errors of TrainingGpu::Take.
absl::Status AccumulateGradients(const TrainingModel& model, const Parameters& parameters,
                                 const std::vector<TrainingSequence>& sequences,
                                 const SequenceIndices& indices, const PassOptions& options,
                                 TokenGradient gradient);

// The same forward pass alone.
absl::Status ScoreTokens(const TrainingModel& model, const Parameters& parameters,
                         const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                         const PassOptions& options, absl::FunctionRef<void(const ScoredToken&)> visit);

// Sums every buffer's gradient over ranks, zeros where a rank has none.
absl::Status AllReduceGradients(const Parameters& parameters, Communicator& communicator);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_
