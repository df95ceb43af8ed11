// One secret draw of inputs with what the reference makes of them.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "reward_service/referee/tensors/comparison.h"
#include "reward_service/referee/tensors/own_tensors.h"

namespace warpsmith {

struct Draw {
  OwnTensors inputs;                  // inputs and parameters, by TaskLayout
  OwnTensors expected;                // by the outputs of TaskLayout; between them, nothing; then margins
  std::vector<Tolerance> tolerances;  // by output
  int64_t parameter_seed = 0;         // 0: the parameters that the model is constructed with
  bool own_distribution = true;       // as get_inputs() draws; else another magnitude or distribution
  std::string style;
  mutable bool shown = false;           // a jail has had it
  std::shared_ptr<const void> counted;  // its task counts the owners of this: the draws that it still has

  // Returns what an output should be, on the host and valid until the next call.
  ExpectedBytes Expected(const TaskLayout& layout, size_t output) const {
    const bool exact = tolerances[output].has_margins;
    const char* const bytes =
        expected.Read(0, exact ? layout.exact_output_bytes() : layout.output_buffer_bytes);
    const TensorSpec& spec = layout.outputs[output];
    return {bytes + spec.offset,
            exact ? reinterpret_cast<const uint32_t*>(bytes + spec.margins_offset) : nullptr};
  }
};

// Input sets of calls that are made one after another, without a look at what they do in between.
using Batch = absl::Span<const Draw* const>;

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DRAW_H_
