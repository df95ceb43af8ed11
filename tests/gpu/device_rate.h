// Times of kernels for tests, which print them and assert none.
#ifndef WARPSMITH_TESTS_GPU_DEVICE_RATE_H_
#define WARPSMITH_TESTS_GPU_DEVICE_RATE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/base/check.h"

namespace warpsmith {

// Median of 20 launches on the default stream, each between two events; 3 before are not counted. `launch` must not
// fail.
inline double MedianSeconds(const std::function<cudaError_t()>& launch) {
  constexpr int kWarmUps = 3, kRuns = 20;
  cudaEvent_t begin, end;
  WS_CHECK(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
  std::vector<float> milliseconds;
  for (int run = 0; run < kWarmUps + kRuns; ++run) {
    float elapsed = 0;
    WS_CHECK(cudaEventRecord(begin) == cudaSuccess);
    WS_CHECK(launch() == cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    WS_CHECK(cudaEventRecord(end) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess);
    WS_CHECK(cudaEventElapsedTime(&elapsed, begin, end) == cudaSuccess);
    if (run >= kWarmUps) milliseconds.push_back(elapsed);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kRuns / 2, milliseconds.end());
  return milliseconds[kRuns / 2] * 1e-3;
}

// Seconds of a copy on the device that reads `bytes` / 2 and writes as many.
inline double CopySeconds(size_t bytes) {
  void *from = nullptr, *to = nullptr;
  WS_CHECK(cudaMalloc(&from, bytes / 2) == cudaSuccess && cudaMalloc(&to, bytes / 2) == cudaSuccess);
  WS_CHECK(cudaMemset(from, 0, bytes / 2) == cudaSuccess);
  const double seconds =
      MedianSeconds([&] { return cudaMemcpyAsync(to, from, bytes / 2, cudaMemcpyDeviceToDevice, nullptr); });
  cudaFree(from);
  cudaFree(to);
  return seconds;
}

// Prints what `launch` takes that reads and writes `bytes` in all, beside a copy that does.
inline void PrintRate(const char* name, size_t bytes, const std::function<cudaError_t()>& launch) {
  const double seconds = MedianSeconds(launch), copy = CopySeconds(bytes);
  std::printf("%s: %.1f us, %.0f GB/s; a copy of as many bytes %.0f GB/s, share %.2f\n", name, seconds * 1e6,
              static_cast<double>(bytes) / seconds * 1e-9, static_cast<double>(bytes) / copy * 1e-9,
              copy / seconds);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_DEVICE_RATE_H_
