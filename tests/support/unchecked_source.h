// Checkpoints that no writer of ours makes, for those who read them.
#ifndef WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_
#define WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_

#include <cstddef>

#include "core/model/hugging_face_weights.h"

namespace warpsmith {

// HuggingFaceSource without its refusals. `parameters` must outlive it.
inline TensorSource UncheckedSource(const Parameters& parameters) {
  return [&parameters](const TensorInfo& info, const ByteSink& sink) -> absl::Status {
    const at::ScalarType type = info.type == TensorType::kF32   ? at::kFloat
                                : info.type == TensorType::kF16 ? at::kHalf
                                                                : at::kBFloat16;
    const at::Tensor tensor = parameters.ToHf(type).at(info.name);
    return sink({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  };
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_
