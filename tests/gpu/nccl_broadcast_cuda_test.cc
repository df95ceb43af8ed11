// Members as threads of one process, a device each. Also built against GPUs made of the host.
#include "core/distributed/nccl_broadcast_cuda.h"

#include <functional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kShort = absl::Seconds(3);
constexpr absl::Duration kBeyond = absl::Seconds(10);

int NumDevices() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  return count;
}

using Work = std::function<absl::Status(NcclBroadcast& broadcast, int rank)>;

// `work` of every rank in a thread, with the deadline in `patience`.
std::vector<absl::Status> RunMembers(int size, absl::Duration patience, const Work& work) {
  const std::string id = DrawBroadcastId().value();
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto broadcast = NcclBroadcast::Join({id, size, rank}, rank, absl::Now() + patience);
      statuses[rank] = broadcast.ok() ? work(**broadcast, rank) : broadcast.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace

TEST_CASE("what rank 0 has is brought to all, in its order") {
  const int size = NumDevices();
  if (size < 2) {
    WARN("needs two devices");
    return;
  }
  const auto statuses =
      RunMembers(size, absl::Seconds(60), [](NcclBroadcast& broadcast, int rank) -> absl::Status {
        for (const int64_t count : {1, 1000, 3'000'000}) {
          const std::vector<float> wanted = RandomFloats(count, count);
          const DeviceArray array(rank == 0 ? wanted : std::vector<float>(count));
          absl::Status status = broadcast.Bring(array.get(), count * static_cast<int64_t>(sizeof(float)));
          if (status.ok()) status = broadcast.Await();
          if (!status.ok()) return status;
          if (array.Read() != wanted) return absl::InternalError("other numbers");
        }
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) {
    INFO(status);
    CHECK(status.ok());
  }
}

TEST_CASE(
    "a member that joins and sends nothing is waited for until the deadline, and nothing writes after it") {
  if (NumDevices() < 2) {
    WARN("needs two devices");
    return;
  }
  const absl::Time began = absl::Now();
  const auto statuses = RunMembers(2, kShort, [&](NcclBroadcast& broadcast, int rank) -> absl::Status {
    const DeviceArray array(std::vector<float>(1'000'000, 0.0f));
    if (rank == 0) {
      absl::SleepFor(kShort + absl::Seconds(2));  // alive, but elsewhere
      return absl::OkStatus();
    }
    absl::Status status = broadcast.Bring(array.get(), 4'000'000);
    if (status.ok()) status = broadcast.Await();
    CHECK_FALSE(broadcast.may_still_write());
    return status;
  });
  INFO(statuses[1]);
  CHECK(absl::IsDeadlineExceeded(statuses[1]));
  CHECK_THAT(std::string(statuses[1].message()),
             Catch::Contains("Rank 1 of 2") && Catch::Contains("publish again without it"));
  CHECK(absl::Now() - began < kShort + kBeyond);
}

TEST_CASE("a member that is told to stop does so at once") {
  const std::string id = DrawBroadcastId().value();
  const absl::Time began = absl::Now();
  const absl::Status status =
      NcclBroadcast::Join({id, 2, 0}, 0, began + absl::Seconds(60), [] { return true; }).status();
  INFO(status);
  CHECK(absl::IsAborted(status));
  CHECK(absl::Now() - began < kBeyond);
}

}  // namespace warpsmith
