// The weights: flat tensors in the order of a ParameterLayout.
#ifndef WARPSMITH_CORE_MODEL_PARAMETERS_H_
#define WARPSMITH_CORE_MODEL_PARAMETERS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// One contiguous tensor [size] a buffer. Movable; copying shares the tensors (see Clone). Not thread-safe
// while written.
class Parameters {
 public:
  // Zeros.
  explicit Parameters(const ParameterLayout& layout, at::ScalarType dtype = at::kFloat,
                      at::Device device = at::Device(at::kCPU));

  const ParameterLayout& layout() const { return layout_; }
  const ModelConfig& config() const { return layout_.config(); }
  at::ScalarType dtype() const { return buffers_[0].scalar_type(); }
  at::Device device() const { return buffers_[0].device(); }

  int num_buffers() const { return static_cast<int>(buffers_.size()); }
  // The flat tensor [size] itself: a leaf for autograd, whose .grad() is flat as well.
  const at::Tensor& buffer(int index) const { return buffers_[index]; }

  // View of an entry in its shape; differentiable with respect to the flat buffer.
  at::Tensor View(int buffer, const std::string& entry) const;

  // Norm weights 1, biases 0, matrices normal with deviation 0.02 (projections into the residual stream: 0.02 / sqrt(2
  // * layers)). Element i of a tensor depends on seed, the tensor's Hugging Face name and i alone: equal on
  // every machine and rank.
  void InitRandom(uint64_t seed);

  // Makes the buffers leaves that require a gradient, or plain ones.
  void RequireGrad(bool required);
  // Forgets all gradients.
  void ZeroGrad();

  // Deep copy, converted; requires no gradient.
  Parameters Clone(at::ScalarType dtype) const;
  // Overwrites the values by those of `other`: same layout; dtype and device may differ.
  void CopyFrom(const Parameters& other);

  // Hugging Face name -> new CPU tensor of `dtype`; tied lm_head is left out, as transformers saves it.
  std::map<std::string, at::Tensor> ToHf(at::ScalarType dtype) const;
  // One of them: `tensor` is of layout().hf_tensors().
  at::Tensor HfTensor(const HfTensorLayout& tensor, at::ScalarType dtype) const;
  // OUT_OF_RANGE names a tensor (of buffer `index`) and its value of 65,520 or more: float16 makes it infinite.
  // INVALID_ARGUMENT where it is not finite before.
  absl::Status CheckFitsFloat16(int index) const;
  absl::Status CheckFitsFloat16(const HfTensorLayout& tensor) const;
  // Takes every tensor of the layout from `tensors`, converting dtypes. INVALID_ARGUMENT on a missing name, a
  // wrong shape, a name that the architecture does not have (a tied "lm_head.weight" is allowed and ignored:
  // CheckTiedHead compares it) and a value that is not finite; the values are unspecified then.
  absl::Status FromHf(const std::map<std::string, at::Tensor>& tensors);

  // The bytes of buffer `index` (CPU only), valid until it is written or destroyed; and their replacement,
  // whose size must match (INVALID_ARGUMENT). For weight files: no renaming, no reordering.
  std::string_view BufferBytes(int index) const;
  absl::Status SetBufferBytes(int index, std::string_view bytes);

 private:
  ParameterLayout layout_;
  std::vector<at::Tensor> buffers_;
};

// Whether a contiguous float16 tensor on the CPU has finite values alone. One pass: at::isfinite takes several.
bool AllFiniteFloat16(const at::Tensor& values);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_PARAMETERS_H_
