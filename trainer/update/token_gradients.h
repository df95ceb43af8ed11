// Forward and backward passes over training sequences, with the loss left to the caller.
#ifndef WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_
#define WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/model/training/model_trainer.h"
#include "trainer/data/training_sequence.h"
#include "trainer/update/batching.h"

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
};

// Adds the gradient of the loss over sequences `indices` to the sums of `trainer`. The sum does not depend on
// micro_batch_tokens but for rounding. The errors of ModelTrainer::Accumulate, with the way out where memory lacks.
absl::Status AccumulateGradients(ModelTrainer& trainer, const std::vector<TrainingSequence>& sequences,
                                 const SequenceIndices& indices, const PassOptions& options,
                                 TokenGradient gradient);

// Runs the same forward pass alone, with the present weights or those of the reference.
absl::Status ScoreTokens(ModelTrainer& trainer, PassWeights weights,
                         const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                         const PassOptions& options, absl::FunctionRef<void(const ScoredToken&)> visit);

// Gives every rank the weights of rank 0. Does nothing for one rank.
absl::Status BroadcastWeights(ModelTrainer& trainer, Communicator& communicator);

// Sums every buffer's gradient over ranks, zeros where a rank has none. Does nothing for one rank.
absl::Status AllReduceGradients(ModelTrainer& trainer, Communicator& communicator);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_TOKEN_GRADIENTS_H_
