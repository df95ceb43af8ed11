// Arrays in device memory for tests.
#ifndef WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_
#define WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"

namespace warpsmith {

// T is copied byte by byte.
template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values) : size_(values.size()) {
    WS_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory_), size_ * sizeof(T)) == cudaSuccess)
        << size_ << " elements of " << sizeof(T) << " bytes";
    WS_CHECK(cudaMemcpy(memory_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { cudaFree(memory_); }

  T* get() const { return memory_; }
  size_t size() const { return size_; }

  // Waits for the device.
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    WS_CHECK(cudaMemcpy(values.data(), memory_, size_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }

 private:
  size_t size_;
  T* memory_ = nullptr;
};

using DeviceArray = DeviceVector<float>;

// Uniform in [-1, 1).
inline std::vector<float> RandomFloats(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(2 * UniformDouble(seed, i) - 1);
  return values;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_DEVICE_ARRAY_H_
