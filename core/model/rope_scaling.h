// How rotary angles are stretched for more positions than a model was first trained on.
//
// Letters: h head_dim, L original_max_position_embeddings, f_i = theta^(-2i / h) the angle of pair i a position,
// and clamp to [0, 1]. The scaled angle is, by type:
//   default  f
//   linear   f / factor                                                     Chen et al., arXiv 2306.15595
//   llama3   (1 - s) f / factor + s f,  s = clamp((L f / 2 pi - low) / (high - low))    Llama 3.1
//   yarn     r f / factor + (1 - r) f,  r = clamp((i - first) / (last - first))         Peng et al., arXiv 2309.00071
//            first = d(beta_fast), last = d(beta_slow), d(n) = h ln(L / (2 pi n)) / (2 ln theta)
// yarn multiplies cosines and sines by attention_factor as well.
//
// Source: transformers, modeling_rope_utils.py. Its types "dynamic" and "longrope" are not computed: their angles
// change as a sequence grows, so that a token's log-probability would depend on the tokens behind it.
#ifndef WARPSMITH_CORE_MODEL_ROPE_SCALING_H_
#define WARPSMITH_CORE_MODEL_ROPE_SCALING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace warpsmith {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

// A member that its type does not name keeps its default and means nothing.
struct RopeScaling {
  RopeType type = RopeType::kDefault;
  double factor = 1.0;                           // all but default; at least 1
  int64_t original_max_position_embeddings = 0;  // llama3, yarn; positions
  double low_freq_factor = 1.0;                  // llama3
  double high_freq_factor = 4.0;                 // llama3; above low_freq_factor
  double beta_fast = 32.0;                       // yarn; turns within L
  double beta_slow = 1.0;                        // yarn; at most beta_fast
  double attention_factor = 1.0;                 // yarn
  bool truncate = true;                          // yarn: `first` is rounded down and `last` up

  bool operator==(const RopeScaling&) const = default;
};

// "default", "linear", "llama3" or "yarn", as "rope_type" of a config.json says it.
std::string RopeTypeName(RopeType type);

// All members, for a message or to compare: "yarn, factor 4, ...".
std::string RopeScalingText(const RopeScaling& scaling);

// The pairs between which yarn's ramp rises, within [0, h - 1].
struct YarnRamp {
  double first = 0;
  double last = 0;
};
YarnRamp YarnRampOf(const RopeScaling& scaling, int64_t head_dim, double rope_theta);

// INVALID_ARGUMENT naming the member, its value and what is allowed. yarn wants a rope_theta above 1.
absl::Status ValidateRopeScaling(const RopeScaling& scaling, double rope_theta);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_ROPE_SCALING_H_
