// Checkpoints that no writer of ours makes, for those who read them.
#ifndef WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_
#define WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_

#include <algorithm>
#include <cstddef>

#include "core/base/check.h"
#include "core/model/hugging_face_weights.h"

namespace warpsmith {

// HuggingFaceSource without its refusals. `parameters` must outlive it.
inline TensorSource UncheckedSource(const Parameters& parameters) {
  return [&parameters](const TensorInfo& info, const ByteSink& sink) -> absl::Status {
    const at::ScalarType type = info.type == TensorType::kF32   ? at::kFloat
                                : info.type == TensorType::kF16 ? at::kHalf
                                                                : at::kBFloat16;
    const auto& layouts = parameters.layout().hf_tensors();
    const auto layout = std::find_if(layouts.begin(), layouts.end(),
                                     [&](const HfTensorLayout& each) { return each.name == info.name; });
    WS_CHECK(layout != layouts.end()) << info.name;
    const at::Tensor tensor = parameters.HfTensor(*layout, type);
    return sink({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  };
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_UNCHECKED_SOURCE_H_
