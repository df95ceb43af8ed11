// Arrays in device memory for tests.
#ifndef WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_
#define WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"

namespace warpsmith {

class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<float>& values) : size_(values.size()) {
    WS_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory_), size_ * sizeof(float)) == cudaSuccess)
        << size_ << " floats";
    WS_CHECK(cudaMemcpy(memory_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice) ==
             cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(memory_); }

  float* get() const { return memory_; }

  // Waits for the device.
  std::vector<float> Read() const {
    std::vector<float> values(size_);
    WS_CHECK(cudaMemcpy(values.data(), memory_, size_ * sizeof(float), cudaMemcpyDeviceToHost) ==
             cudaSuccess);
    return values;
  }

 private:
  size_t size_;
  float* memory_ = nullptr;
};

// Uniform in [-1, 1).
inline std::vector<float> RandomFloats(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(2 * UniformDouble(seed, i) - 1);
  return values;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_
