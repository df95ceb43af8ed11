// Layers whose weights and sums of gradients are the caller's.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_BOUND_LAYERS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_BOUND_LAYERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/model/parameter_layout.h"
#include "core/model/training/layer_compute.h"

namespace warpsmith {

// Weights are of type T, sums of gradients of type Sum, both in the memory of the device that computes.
template <typename T, typename Sum>
class BoundLayers : public LayerCompute {
 public:
  // Names the flat buffers of the passes to come, by their index in the layout of the configuration: the weights, and
  // where the gradient is added, which may be empty without a backward pass. They outlive the passes. REQUIRES: as many
  // as the layout has.
  void Bind(std::vector<const T*> weights, std::vector<Sum*> gradients) {
    WS_CHECK(static_cast<int>(weights.size()) == layout_.num_buffers() &&
             (gradients.empty() || gradients.size() == weights.size()))
        << weights.size() << " buffers of weights and " << gradients.size()
        << " of gradients for a layout of " << layout_.num_buffers();
    weights_ = std::move(weights);
    gradients_ = std::move(gradients);
  }

  int64_t num_layers() const override { return layout_.config().num_hidden_layers; }

 protected:
  explicit BoundLayers(const ModelConfig& config) : layout_(config) {}

  const ParameterLayout layout_;
  std::vector<const T*> weights_;
  std::vector<Sum*> gradients_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_BOUND_LAYERS_H_
