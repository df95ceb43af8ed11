#include <c10/core/impl/VirtualGuardImpl.h>

#include "reward_service/facade/handle.h"
#include "warpsmith_facade/cuda.h"

namespace warpsmith_facade {
namespace cuda {
namespace {

// Torch's interface to the backend, so that this library needs none of CUDA's; throws where Torch has no
// CUDA.
c10::impl::VirtualGuardImpl Backend() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

CUDAStream Wrap(const c10::Stream& stream) {
  return {static_cast<CUstream_st*>(stream.native_handle()), static_cast<DeviceIndex>(stream.device_index())};
}

c10::Device DeviceAt(DeviceIndex index) {
  return {c10::DeviceType::CUDA, index < 0 ? current_device() : index};
}

}  // namespace

CUDAStream getCurrentCUDAStream(DeviceIndex index) { return Wrap(Backend().getStream(DeviceAt(index))); }
CUDAStream getDefaultCUDAStream(DeviceIndex index) {
  return Wrap(Backend().getDefaultStream(DeviceAt(index)));
}
DeviceIndex current_device() { return static_cast<DeviceIndex>(Backend().getDevice().index()); }
DeviceIndex ExchangeDevice(DeviceIndex index) {
  return static_cast<DeviceIndex>(Backend().exchangeDevice({c10::DeviceType::CUDA, index}).index());
}

}  // namespace cuda
}  // namespace warpsmith_facade
