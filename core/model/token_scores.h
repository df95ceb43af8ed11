// What a policy loss needs of each token.
#ifndef WARPSMITH_CORE_MODEL_TOKEN_SCORES_H_
#define WARPSMITH_CORE_MODEL_TOKEN_SCORES_H_

#include <ATen/core/Tensor.h>

namespace warpsmith {

struct TokenScores {
  // [T], differentiable: log softmax(logits / temperature)[target], over the ids that the tokenizer has.
  at::Tensor log_probs;
  at::Tensor entropy;  // [T], of the same distribution, in nats; carries no gradient
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TOKEN_SCORES_H_
