// Ranks as threads of one process, a device each.
#include "core/distributed/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <thread>
#include <vector>

#include "core/base/status_macros.h"
#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"
#include "tests/support/free_port.h"

namespace warpsmith {
namespace {

constexpr CollectiveLabel kLabel{"numbers", "test"};

int NumDevices() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  return count;
}

using Work = std::function<absl::Status(Communicator&)>;

std::vector<absl::Status> RunRanks(int size, absl::Duration deadline, const Work& work) {
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  const int port = FreePort();
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const ProcessGroupEnvironment environment{
          .rank = rank, .world_size = size, .local_rank = rank, .master_port = port};
      const auto run = [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
        ASSIGN_OR_RETURN(const auto communicator,
                         CreateNcclCommunicator(environment, control.get(), {.deadline = deadline}));
        return work(*communicator);
      };
      statuses[rank] = run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace

TEST_CASE("collectives over all devices of this machine") {
  const int size = NumDevices();
  const auto statuses = RunRanks(size, absl::Seconds(60), [&](Communicator& communicator) -> absl::Status {
    const float own = static_cast<float>(communicator.rank() + 1);
    DeviceArray values(std::vector<float>(1000, own));
    absl::Status status = communicator.AllReduceSum(values.get(), 1000, ElementType::kFloat32, kLabel);
    if (!status.ok()) return status;
    const auto sum = static_cast<float>(size * (size + 1) / 2);
    if (values.Read() != std::vector<float>(1000, sum)) return absl::InternalError("wrong sum");

    DeviceArray from_last({own});
    status = communicator.Broadcast(from_last.get(), sizeof(float), size - 1, kLabel);
    if (!status.ok()) return status;
    if (from_last.Read()[0] != static_cast<float>(size)) return absl::InternalError("wrong broadcast");

    DeviceArray mine({own}), all(std::vector<float>(size, 0.0f));
    status = communicator.AllGather(mine.get(), all.get(), sizeof(float), kLabel);
    if (!status.ok()) return status;
    for (int rank = 0; rank < size; ++rank) {
      if (all.Read()[rank] != static_cast<float>(rank + 1)) return absl::InternalError("wrong gather");
    }
    return communicator.Barrier(kLabel);
  });
  for (const absl::Status& status : statuses) {
    INFO(status);
    CHECK(status.ok());
  }
}

TEST_CASE("an aborted communicator says why, at once and ever after") {
  const auto statuses = RunRanks(1, absl::Seconds(60), [](Communicator& communicator) -> absl::Status {
    communicator.Abort(absl::CancelledError("stop"));
    return communicator.Barrier(kLabel);
  });
  CHECK(absl::IsCancelled(statuses[0]));
}

TEST_CASE("a rank that does not come to a collective ends it for the others at their deadline") {
  if (NumDevices() < 2) {
    WARN("needs two devices");
    return;
  }
  const auto statuses = RunRanks(2, absl::Seconds(10), [](Communicator& communicator) -> absl::Status {
    const absl::Status met = communicator.Barrier({"first", "test"});
    if (!met.ok() || communicator.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(12));  // alive, but elsewhere
      return met;
    }
    return communicator.Barrier({"second", "test"});
  });
  INFO(statuses[0]);
  CHECK(absl::IsDeadlineExceeded(statuses[0]));
  CHECK(std::string(statuses[0].message()).find("barrier \"second\"") != std::string::npos);
}

}  // namespace warpsmith
