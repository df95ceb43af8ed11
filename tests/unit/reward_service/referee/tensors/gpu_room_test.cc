#include "absl/time/clock.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

TEST_CASE("a GPU is crowded by what others have of it than who asks, and where nobody knows") {
  FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const int64_t all = store->device_bytes();
  CHECK_FALSE(store->IsCrowded(0));  // an eighth is taken
  gpu.Say("free 50\n");
  CHECK(store->IsCrowded(0));
  CHECK(store->IsCrowded(all / 5));
  CHECK_FALSE(store->IsCrowded(all / 3));
  gpu.Say("fail cuMemGetInfo_v2 1\n");
  CHECK(store->IsCrowded(all));
}

TEST_CASE("memory of processes that were ended is waited for while it is scarce, not for long") {
  FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  CHECK_FALSE(store->EndWaiting());
  store->set_end_waiting([] { return true; });
  const auto seconds = [&] {
    const absl::Time begin = absl::Now();
    CHECK(store->EndWaiting());
    return absl::ToDoubleSeconds(absl::Now() - begin);
  };
  CHECK(seconds() < 0.2);
  gpu.Say("free 10\n");
  CHECK(seconds() > 0.25);
  store->set_end_waiting([&] {
    gpu.Say("");
    return true;
  });
  CHECK(seconds() < 0.2);
}

}  // namespace
}  // namespace warpsmith
