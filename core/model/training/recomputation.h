// Which activations of a layer wait in memory for the backward pass.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_RECOMPUTATION_H_
#define WARPSMITH_CORE_MODEL_TRAINING_RECOMPUTATION_H_

#include <string_view>

namespace warpsmith {

// Named by what the backward pass computes again; the layer's input always waits. Gradients have the same bits under
// each. Activations are those of LayerActivations.
enum class Recomputation {
  kNone,             // nothing: all of them wait, on a GPU the logits too
  kMlp,              // gate_up; here and below the logits
  kAllButAttention,  // qkv, middle and gate_up: attended and log_sum_exp wait, which cost most to compute
  kLayer,            // all of them
};

inline constexpr Recomputation kRecomputations[] = {Recomputation::kNone, Recomputation::kMlp,
                                                    Recomputation::kAllButAttention, Recomputation::kLayer};

// Returns the name in configurations: "none", "mlp", "all_but_attention" or "layer".
constexpr std::string_view NameOf(Recomputation recomputation) {
  constexpr std::string_view kNames[] = {"none", "mlp", "all_but_attention", "layer"};
  return kNames[static_cast<int>(recomputation)];
}

// Returns whether what a layer's attention gave waits, and whether what lies between its products does.
constexpr bool KeepsAttention(Recomputation recomputation) { return recomputation != Recomputation::kLayer; }
constexpr bool KeepsInputs(Recomputation recomputation) {
  return recomputation == Recomputation::kNone || recomputation == Recomputation::kMlp;
}
constexpr bool KeepsMlp(Recomputation recomputation) { return recomputation == Recomputation::kNone; }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_RECOMPUTATION_H_
