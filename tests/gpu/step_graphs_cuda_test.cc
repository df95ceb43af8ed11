#include "rollout_workers/device/step_graphs_cuda.h"

#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr size_t kBytes = 64;

// Copies one piece of device memory to another.
struct Copy {
  const CudaStream stream = CreateStream().value();
  const DeviceMemory from = DeviceMemory::Zeros(kBytes).value();
  const DeviceMemory to = DeviceMemory::Zeros(kBytes).value();
  int num_launches = 0;

  absl::Status Launch() {
    ++num_launches;
    return CudaStatus(cudaMemcpyAsync(to.get(), from.get(), kBytes, cudaMemcpyDeviceToDevice, stream.get()),
                      "A copy");
  }
  // What a run makes of `value`.
  int Run(device::StepGraphs& graphs, int bucket, int value) {
    unsigned char copied = 0;
    REQUIRE(cudaMemsetAsync(from.get(), value, kBytes, stream.get()) == cudaSuccess);
    REQUIRE(graphs.Launch(bucket, stream.get(), [this] { return Launch(); }).ok());
    REQUIRE(cudaMemcpyAsync(&copied, to.get(), 1, cudaMemcpyDeviceToHost, stream.get()) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);
    return copied;
  }
};

}  // namespace

TEST_CASE("a bucket is launched directly, then captured, then its graph is launched") {
  Copy copy;
  device::StepGraphs graphs;
  for (int i = 1; i <= 5; ++i) CHECK(copy.Run(graphs, 8, i) == i);
  CHECK(copy.num_launches == 2);
  CHECK(copy.Run(graphs, 16, 77) == 77);
  CHECK(copy.num_launches == 3);
  graphs.Clear();
  CHECK(copy.Run(graphs, 8, 78) == 78);
  CHECK(copy.num_launches == 4);
}

TEST_CASE("a bucket that cannot be captured is launched directly for good") {
  const CudaStream stream = CreateStream().value();
  device::StepGraphs graphs;
  int num_calls = 0;
  for (int i = 0; i < 5; ++i) {
    const absl::Status status = graphs.Launch(8, stream.get(), [&] {
      ++num_calls;
      return CudaStatus(cudaStreamSynchronize(stream.get()), "Waiting in a capture");
    });
    CHECK(status.ok());
  }
  CHECK(num_calls == 6);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream.get()) == cudaSuccess);
}

}  // namespace warpsmith
