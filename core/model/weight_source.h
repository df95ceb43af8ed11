// Weights of one version that lie ready for a GPU. Needs neither CUDA nor LibTorch, so that any source can include it.
#ifndef WARPSMITH_CORE_MODEL_WEIGHT_SOURCE_H_
#define WARPSMITH_CORE_MODEL_WEIGHT_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpsmith {

// One thread at a time, not always the same; CopyTo of different GPUs also at once.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Elements of bfloat16 or float16 of all buffers of the layout, one behind the other; of a shard where it has one for
  // each GPU.
  virtual int64_t num_elements() const = 0;

  // Copies all that are for GPU `device` to `elements`, memory of it that nothing uses, and checks what has arrived.
  // DATA_LOSS: it is not what was offered; DEADLINE_EXCEEDED: the device may still write to `elements`; INTERNAL with
  // CUDA's message. May be repeated.
  virtual absl::Status CopyTo(uint16_t* elements, int device, absl::Time deadline) = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_WEIGHT_SOURCE_H_
