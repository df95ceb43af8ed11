// Draws one token from a row of logits.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SAMPLER_H_
#define WARPSMITH_ROLLOUT_WORKERS_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token_log_prob.h"
#include "rollout_workers/sampling_parameters.h"

namespace warpsmith {

struct SampledToken {
  int32_t token_id = 0;
  // log softmax(logits / temperature) of the token before any truncation, float32, the softmax over
  // the ids that the tokenizer has. At temperature 0, where that has no meaning, log
  // softmax(logits). By the function that scores tokens in training, so that the bits agree.
  float log_prob = 0;
};

// The definition of sampling, for the CPU and for a device: the token is a function of its row of logits, the
// parameters, and uniform = UniformDouble(seed of the sample, index of the token in the answer). A device that sums
// in another order, or rounds exponentials otherwise, agrees but for rounding: it may take the neighbouring token
// where `uniform` is within its rounding of the edge between two intervals, or keep or cut a token whose weight is
// within its rounding of the edge of top-p or min-p. Top-k and greedy compare logits alone, and agree always where
// the logits do.
//
// Holds scratch memory for one vocabulary, so that a draw allocates nothing. Not thread-safe: one for each
// thread.
//
// Costs: four vectorised passes over the row, two of them for the log-prob; with top-k or min-p one more; a
// sort only for top-p, and only of the tokens that could be in the nucleus.
class Sampler {
 public:
  explicit Sampler(int vocabulary_size);

  // The token whose interval of the cumulative distribution holds `uniform` in [0, 1): in descending order of
  // probability (ties by id) where top-p truncates, else in ascending order of ids. A pure function of its
  // arguments. Nothing when the logits have a NaN, +infinity, or -infinity alone. `logits`:
  // [vocabulary_size]; `parameters` valid.
  std::optional<SampledToken> Draw(absl::Span<const float> logits, const SamplingParameters& parameters,
                                   double uniform);

 private:
  struct Candidate {
    float weight;  // exp(logit / temperature - largest), not normalised
    int32_t token_id;
  };

  int32_t ChooseFromAll(double uniform, double total) const;
  int32_t ChooseTruncated(absl::Span<const float> logits, const SamplingParameters& parameters,
                          double uniform);
  void CollectTopK(absl::Span<const float> logits, int top_k);
  void CollectAll();
  // Candidates of the nucleus, sorted by descending weight.
  void KeepNucleus(double top_p);

  std::vector<float> weights_;      // [vocabulary_size]
  std::vector<double> block_sums_;  // of weights_, a block each
  std::vector<Candidate> candidates_;
  std::vector<float> largest_;  // heap of the k largest logits, smallest on top
};

// The `count` most probable tokens, at most all, by the distribution that `drawn` was scored in: at `temperature`,
// before any truncation, at 1 where that is 0. Equal logits in ascending order of ids.
std::vector<TokenLogProb> TopTokensOf(absl::Span<const float> logits, double temperature,
                                      const SampledToken& drawn, int count);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_SAMPLER_H_
