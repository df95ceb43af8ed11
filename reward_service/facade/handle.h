// Between the facade's values and Torch's; for the library alone.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_HANDLE_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_HANDLE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <utility>
#include <vector>

#include "warpsmith_facade/tensor.h"

namespace warpsmith_facade {

static_assert(static_cast<int>(ScalarType::Bool) == static_cast<int>(c10::ScalarType::Bool));
static_assert(static_cast<int>(ScalarType::BFloat16) == static_cast<int>(c10::ScalarType::BFloat16));
static_assert(static_cast<int>(DeviceType::CUDA) == static_cast<int>(c10::DeviceType::CUDA));
static_assert(static_cast<int>(MemoryFormat::ChannelsLast3d) ==
              static_cast<int>(c10::MemoryFormat::ChannelsLast3d));

// A facade tensor holds one at::Tensor, and so do vectors and optionals of it.
static_assert(sizeof(at::Tensor) == sizeof(void*) && sizeof(at::Tensor) == sizeof(Tensor));
static_assert(sizeof(std::optional<at::Tensor>) == sizeof(std::optional<Tensor>));

struct Handle {
  static at::Tensor& Of(Tensor& tensor) {
    return *std::launder(reinterpret_cast<at::Tensor*>(tensor.handle_));
  }
  static const at::Tensor& Of(const Tensor& tensor) {
    return *std::launder(reinterpret_cast<const at::Tensor*>(tensor.handle_));
  }
  static void* Place(Tensor& tensor) { return tensor.handle_; }
};

inline at::Tensor& Real(Tensor& tensor) { return Handle::Of(tensor); }
inline const at::Tensor& Real(const Tensor& tensor) { return Handle::Of(tensor); }
inline Tensor Wrap(at::Tensor tensor) {
  Tensor wrapped;
  Handle::Of(wrapped) = std::move(tensor);
  return wrapped;
}
std::vector<Tensor> Wrap(const std::vector<at::Tensor>& tensors);
std::vector<at::Tensor> Real(TensorList tensors);

inline at::ScalarType Real(ScalarType type) { return static_cast<at::ScalarType>(type); }
inline at::MemoryFormat Real(MemoryFormat format) { return static_cast<at::MemoryFormat>(format); }
inline at::Device Real(Device device) { return {static_cast<at::DeviceType>(device.type()), device.index()}; }
inline Device Wrap(at::Device device) {
  return {static_cast<DeviceType>(device.type()), static_cast<DeviceIndex>(device.index())};
}
inline at::IntArrayRef Real(IntArrayRef values) { return {values.data(), values.size()}; }
inline IntArrayRef Wrap(at::IntArrayRef values) { return {values.data(), values.size()}; }
at::Scalar Real(const Scalar& value);
std::optional<at::Scalar> Real(const std::optional<Scalar>& value);
at::TensorOptions Real(const TensorOptions& options);

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_HANDLE_H_
