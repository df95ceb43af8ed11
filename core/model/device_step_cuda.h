// The launches of one step of a decoder on a GPU, in their order.
//
// With round() to what is stored at each "=", a layer is
//   qkv = W_qkv norm(x),  q, k, v = attention_inputs(qkv),  a = attention(q, pages)
//   x = W_output a + x,  g = W_gate_up norm(x),  x = W_down swiglu(g) + x
// The residual is added inside the products, in float32 before their one rounding: a delta that were stored first, for
// the norm to add, would be rounded twice.
//
// Of shard r of N the products give partial sums, which all shards exchange, and the next norm adds them in their
// order:
//   p_r = W_output_r a_r,  x = x + p_0 + ... + p_(N-1)
// so each part is rounded once, and the residual once as in a whole model. x has the same bits on every shard, and a
// row's bits do not depend on what else is in its step. Gathering the parts moves N / 2 times what reducing them would,
// as much where N is 2, and takes half the steps of a ring.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_STEP_CUDA_H_
#define WARPSMITH_CORE_MODEL_DEVICE_STEP_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/device_decoder.h"
#include "core/model/device_decoder_options.h"
#include "core/model/device_memory_plan.h"
#include "core/model/device_weights_cuda.h"

namespace warpsmith {

// One thread, one stream at a time.
class DeviceStepLauncher {
 public:
  // Of options.dtype, which is that of the weights. Chooses the products' algorithms by measuring them, with weights
  // that come from memory, and logs how long that took. `weights`, `scratch` (places.bytes, rotary tables filled) and
  // `pages`, which may have no memory yet, outlive this.
  static absl::StatusOr<std::unique_ptr<DeviceStepLauncher>> Create(const DeviceDecoderOptions& options,
                                                                    const DeviceWeights& weights,
                                                                    const DeviceScratch& places,
                                                                    std::byte* scratch, std::byte* pages);
  DeviceStepLauncher() = default;
  virtual ~DeviceStepLauncher() = default;
  DeviceStepLauncher(const DeviceStepLauncher&) = delete;
  DeviceStepLauncher& operator=(const DeviceStepLauncher&) = delete;

  // See DeviceDecoder::Launch.
  virtual absl::Status Launch(const DeviceStep& step, cudaStream_t stream) const = 0;

  virtual const float* logits() const = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_STEP_CUDA_H_
