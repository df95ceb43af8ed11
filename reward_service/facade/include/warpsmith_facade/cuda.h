// CUDA's side of Torch's C++ API: streams, guards, checks of launches. Declared without CUDA's headers but
// for the stream's type, which nvcc brings along.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CUDA_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CUDA_H_

#include "warpsmith_facade/check.h"

struct CUstream_st;

namespace warpsmith_facade {
namespace cuda {

// A stream of Torch's pool, or the default one.
class CUDAStream {
 public:
  CUDAStream(CUstream_st* stream, DeviceIndex index) : stream_(stream), index_(index) {}
  CUstream_st* stream() const { return stream_; }
  operator CUstream_st*() const { return stream_; }
  DeviceIndex device_index() const { return index_; }
  Device device() const { return Device(kCUDA, index_); }

 private:
  CUstream_st* stream_;
  DeviceIndex index_;
};
// Of the current device where `index` is -1.
CUDAStream getCurrentCUDAStream(DeviceIndex index = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex index = -1);
DeviceIndex current_device();
// Makes a device the current one; returns the one that was.
DeviceIndex ExchangeDevice(DeviceIndex index);

// The current device while it lives.
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) : former_(ExchangeDevice(index)) {}
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  ~CUDAGuard() { ExchangeDevice(former_); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;

 private:
  DeviceIndex former_;
};

// The same, for tensors that may be on the CPU.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(optional<Device> device) {
    if (device && device->is_cuda() && device->has_index()) former_ = ExchangeDevice(device->index());
  }
  ~OptionalCUDAGuard() {
    if (former_ >= 0) ExchangeDevice(former_);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;

 private:
  DeviceIndex former_ = -1;
};

}  // namespace cuda
}  // namespace warpsmith_facade

#define C10_CUDA_CHECK(call)                                                                          \
  do {                                                                                                \
    const cudaError_t warpsmith_error = (call);                                                       \
    TORCH_CHECK(warpsmith_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(warpsmith_error)); \
  } while (false)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CUDA_H_
