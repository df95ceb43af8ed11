#include "reward_service/referee/tensors/occupation.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

TEST_CASE("a GPU that is kept busy is for nobody else, and says how much longer that took than alone") {
  FakeGpu gpu;
  auto opened = GpuStore::Open(0);
  REQUIRE(opened.ok());
  const std::unique_ptr<GpuStore> store = *std::move(opened);
  store->Occupy();
  const auto longer_us = store->AwaitOccupied();
  REQUIRE(longer_us.ok());
  CHECK(*longer_us >= 0);
  store->Occupy();
  absl::SleepFor(absl::Milliseconds(50));
  const auto beside_another = store->AwaitOccupied();
  REQUIRE(beside_another.ok());
  CHECK(*beside_another > 20'000);
  store->Occupy();
  gpu.Say("fail cuCtxSynchronize 1\n");
  CHECK_FALSE(store->AwaitOccupied().ok());
}

TEST_CASE("a GPU that has become slower for good is known to be, and one that was slow once is not") {
  FakeGpu gpu;
  auto opened = GpuStore::Open(0);
  REQUIRE(opened.ok());
  const std::unique_ptr<GpuStore> store = *std::move(opened);
  const auto longer_us = [&] {
    store->Occupy();
    return *store->AwaitOccupied();
  };
  gpu.Say("late cuCtxSynchronize 20\n");
  for (int i = 0; i < 31; ++i) CHECK(longer_us() > 15'000);
  gpu.Say("");
  CHECK(longer_us() < 15'000);
  gpu.Say("late cuCtxSynchronize 20\n");
  for (int i = 0; i < 32; ++i) CHECK(longer_us() > 15'000);
  CHECK(longer_us() < 15'000);
}

}  // namespace
}  // namespace warpsmith
