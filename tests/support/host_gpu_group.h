// What a test may break among the GPUs of host_gpu_group.cc.
#ifndef WARPSMITH_TESTS_SUPPORT_HOST_GPU_GROUP_H_
#define WARPSMITH_TESTS_SUPPORT_HOST_GPU_GROUP_H_

#include <atomic>
#include <cstdint>

namespace warpsmith {

struct HostGpuFaults {
  std::atomic<bool> are_apart = false;          // no GPU reaches another's memory
  std::atomic<int64_t> gather_that_fails = -1;  // of rank 1, counted from 0 over its life
};

HostGpuFaults& HostFaults();

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HOST_GPU_GROUP_H_
