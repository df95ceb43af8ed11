// The arithmetic of a decoder's training pass, on one device.
//
// Shapes: T tokens of a batch, D hidden_size, L layers.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_LAYER_COMPUTE_H_
#define WARPSMITH_CORE_MODEL_TRAINING_LAYER_COMPUTE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/model/packed_batch.h"

namespace warpsmith {

// Sequences, and for each of their tokens the one that is to be scored behind it.
struct ScoredBatch {
  PackedBatch packed;
  std::vector<int64_t>
      targets;               // [T], below the number of token ids; negative: nothing is scored in this row
  double temperature = 1.0;  // log-probabilities are log softmax(logits / temperature)
};

// On the host, whatever computed them. [T]; 0 in rows without a target.
struct RowScores {
  std::vector<double> log_probs;
  std::vector<double> entropies;  // of the distributions that the targets are scored by, in nats
};

// A pass is Begin, Embed, ForwardLayer of 0 to L - 1 and Score; where activations are kept then BackwardHead,
// BackwardLayer of L - 1 to 0 and BackwardEmbedding (training_pass.h). Weights and sums of gradients are flat buffers
// of a ParameterLayout; backward calls add to the sums. Activations are the implementation's own. One thread at a time.
// Errors: RESOURCE_EXHAUSTED for a batch that memory has no room for, INTERNAL where a library fails; the pass is over
// then.
class LayerCompute {
 public:
  virtual ~LayerCompute() = default;

  virtual int64_t num_layers() const = 0;

  // Takes a batch in. `keeps_activations`: a backward pass follows. `batch` outlives the pass.
  virtual absl::Status Begin(const ScoredBatch& batch, bool keeps_activations) = 0;

  virtual absl::Status Embed() = 0;
  virtual absl::Status ForwardLayer(int64_t layer) = 0;
  // Applies the final norm and the head, and waits for the results.
  virtual absl::Status Score(RowScores* scores) = 0;

  // `log_prob_gradients` [T]: d loss / d log_prob, 0 in rows without a target.
  virtual absl::Status BackwardHead(const std::vector<double>& log_prob_gradients) = 0;
  virtual absl::Status BackwardLayer(int64_t layer) = 0;
  virtual absl::Status BackwardEmbedding() = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_LAYER_COMPUTE_H_
