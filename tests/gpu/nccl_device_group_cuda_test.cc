// A thread a GPU of one process.
#include "core/distributed/nccl_device_group_cuda.h"

#include <barrier>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

int NumDevices() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  return count;
}

// All GPUs of this machine; null, with a word, where there is one.
std::shared_ptr<NcclDeviceGroup> Group() {
  std::vector<int> devices(NumDevices());
  std::iota(devices.begin(), devices.end(), 0);
  if (devices.size() < 2) {
    WARN("needs two devices");
    return nullptr;
  }
  absl::StatusOr<std::shared_ptr<NcclDeviceGroup>> group =
      NcclDeviceGroup::Create(devices, absl::Seconds(60));
  INFO(group.status().message());
  REQUIRE(group.ok());
  return *group;
}

void OnEveryDevice(int size, const std::function<void(int, cudaStream_t)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      cudaStream_t stream = nullptr;
      WS_CHECK(cudaSetDevice(rank) == cudaSuccess);
      WS_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
      work(rank, stream);
      WS_CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("rows are gathered and the first rank's bytes reach all, launched and from graphs") {
  const std::shared_ptr<NcclDeviceGroup> group = Group();
  if (group == nullptr) return;
  const int size = group->size();
  std::vector<int> failures(size);
  std::barrier meeting(size);  // taking memory may wait for a GPU whose kernel waits for another
  OnEveryDevice(size, [&](int rank, cudaStream_t stream) {
    for (const int64_t row : {4, 1000, 3'000'000}) {
      std::vector<float> own(size * row, -1.0f), gathered;
      std::fill_n(own.begin() + rank * row, row, static_cast<float>(rank + 1));
      for (int i = 0; i < size; ++i) gathered.insert(gathered.end(), row, static_cast<float>(i + 1));
      const DeviceArray launched(own), captured(own),
          tokens(std::vector<float>(row, static_cast<float>(rank)));
      const auto bytes = static_cast<int64_t>(row * sizeof(float));
      meeting.arrive_and_wait();
      failures[rank] += !group->AllGather(rank, launched.get(), bytes, stream).ok();
      WS_CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
      failures[rank] += launched.Read() != gathered;

      cudaGraph_t graph = nullptr;
      cudaGraphExec_t ready = nullptr;
      WS_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      failures[rank] += !group->AllGather(rank, captured.get(), bytes, stream).ok();
      failures[rank] += !group->BroadcastFirst(rank, tokens.get(), bytes, stream).ok();
      WS_CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      WS_CHECK(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
      meeting.arrive_and_wait();
      for (int i = 0; i < 100; ++i) WS_CHECK(cudaGraphLaunch(ready, stream) == cudaSuccess);
      WS_CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
      failures[rank] += captured.Read() != gathered;
      failures[rank] += tokens.Read() != std::vector<float>(row, 0.0f);
      meeting.arrive_and_wait();
      cudaGraphExecDestroy(ready);
      cudaGraphDestroy(graph);
    }
  });
  CHECK(failures == std::vector<int>(size));
}

TEST_CASE("an abort ends a collective that a rank does not come to, and refuses later ones") {
  const std::shared_ptr<NcclDeviceGroup> group = Group();
  if (group == nullptr) return;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const DeviceArray all(std::vector<float>(group->size()));
  REQUIRE(group->AllGather(0, all.get(), sizeof(float), stream).ok());
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  group->Abort();
  group->Abort();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaStreamDestroy(stream);
  const absl::Status later = group->AllGather(0, all.get(), sizeof(float), nullptr);
  INFO(later);
  CHECK(absl::IsAborted(later));
}

TEST_CASE("groups of GPUs that are not there, of one, or of one twice are refused") {
  const int count = NumDevices();
  CHECK(absl::IsFailedPrecondition(NcclDeviceGroup::Create({0, count}, absl::Seconds(60)).status()));
  CHECK(absl::IsFailedPrecondition(NcclDeviceGroup::Create({0, -1}, absl::Seconds(60)).status()));
  CHECK(absl::IsInvalidArgument(NcclDeviceGroup::Create({0}, absl::Seconds(60)).status()));
  CHECK(absl::IsInvalidArgument(NcclDeviceGroup::Create({0, 0}, absl::Seconds(60)).status()));
}

}  // namespace warpsmith
