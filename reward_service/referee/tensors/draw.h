// One secret draw of inputs with what the reference makes of them.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "reward_service/referee/tensors/comparison.h"

namespace warpsmith {

// In the referee's own memory: nobody else can change it, and the allocator hands the pages of a retired
// task to the next one (fresh pages, zeroed by the kernel, cost more than the draw itself).
struct Draw {
  std::unique_ptr<char[]> inputs;     // inputs and parameters, by TaskLayout
  std::unique_ptr<char[]> expected;   // by the outputs of TaskLayout; between them, nothing
  std::vector<Tolerance> tolerances;  // by output
  int64_t parameter_seed = 0;         // 0: the parameters that the model is constructed with
  bool own_distribution = true;       // as get_inputs() draws; else another magnitude or distribution
  std::string style;
  mutable bool shown = false;  // a jail has had it
};

// Input sets of calls that are made one after another, without a look at what they do in between.
using Batch = absl::Span<const Draw* const>;

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_
