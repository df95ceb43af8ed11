#include "reward_service/referee/tensors/released_gpu.h"

#include <thread>

#include "absl/time/clock.h"
#include "reward_service/jail/packet.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

constexpr char kNoMemory[] = "fail cuMemAllocAsync 2\nfail cuMemCreate 2\n";

TEST_CASE("a GPU is opened once its memory is free again, and not where it has another fault") {
  FakeGpu gpu(kNoMemory);
  const auto pair = *MakePacketPair();
  std::thread release([&] {
    absl::SleepFor(absl::Milliseconds(300));
    gpu.Say("");
  });
  const absl::Time begin = absl::Now();
  CHECK(OpenReleasedGpu(0, pair.first.get()).ok());
  CHECK(absl::Now() - begin > absl::Milliseconds(200));
  release.join();
  gpu.Say("fail cuMemCreate 999\nfail cuMemAllocAsync 999\n");
  CHECK(absl::IsInternal(OpenReleasedGpu(0, pair.first.get()).status()));
}

TEST_CASE("nobody waits for a GPU for whom nobody waits") {
  const FakeGpu gpu(kNoMemory);
  auto pair = *MakePacketPair();
  pair.second.Reset();
  const absl::Time begin = absl::Now();
  CHECK(absl::IsResourceExhausted(OpenReleasedGpu(0, pair.first.get()).status()));
  CHECK(absl::Now() - begin < absl::Seconds(5));
}

}  // namespace
}  // namespace warpsmith
