// Main of the GPU tests: where there is no device they are skipped, with the reason.
#define CATCH_CONFIG_RUNNER
#include <cuda_runtime_api.h>

#include <cstdio>

#include "core/distributed/nccl_environment.h"
#include "tests/support/catch.h"

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    std::printf("skipped: no CUDA device (%s)\n",
                error == cudaSuccess ? "none found" : cudaGetErrorString(error));
    return kSkipped;
  }
  return Catch::Session().run(argc, argv);
}
