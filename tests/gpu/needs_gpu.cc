// For programs whose tests run on a GPU: where there is none they are skipped.
#include <cuda_runtime_api.h>

#include "core/distributed/nccl_environment.h"
#include "tests/support/skip_where.h"

namespace warpsmith {
namespace {

const SkipWhere skip([]() -> std::string {
  LeaveMulticastOff();
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess) return std::string("no CUDA device: ") + cudaGetErrorString(error);
  return num_devices > 0 ? "" : "no CUDA device";
});

}  // namespace
}  // namespace warpsmith
