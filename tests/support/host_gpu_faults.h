// What a test may break among the GPUs that host_gpu.cc makes of the host.
#ifndef WARPSMITH_TESTS_SUPPORT_HOST_GPU_FAULTS_H_
#define WARPSMITH_TESTS_SUPPORT_HOST_GPU_FAULTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace warpsmith {

struct HostGpuFaults {
  // Nothing that was put on a stream ends, nor does a call that waits for it.
  std::atomic<bool> hangs = false;
  std::atomic<int64_t> num_freed = 0;              // allocations, since the start
  std::atomic<int64_t> checksum_that_fails = -1;   // counts down with each, and fails where it was 0
  std::atomic<bool> hangs_after_checksum = false;  // from the one that fails on
  std::atomic<bool> driver_is_old = false;         // no GPU can be used with it
  std::atomic<bool> lacks_virtual_memory = false;  // older than its functions
  std::atomic<bool> are_apart = false;             // no GPU reaches another's memory
  std::atomic<int64_t> gather_that_fails = -1;     // of rank 1, counted from 0 over its life
};

HostGpuFaults& HostFaults();

// Returns once the GPUs do not hang.
inline void AwaitHostGpu() {
  while (HostFaults().hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HOST_GPU_FAULTS_H_
