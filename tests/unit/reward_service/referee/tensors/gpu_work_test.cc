#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>

#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/held_turn.h"

namespace warpsmith {
namespace {

std::unique_ptr<GpuStore> Open() {
  auto store = GpuStore::Open(0);
  REQUIRE(store.ok());
  return *std::move(store);
}

TEST_CASE("a call goes on until the GPU is idle, and not longer than its limit") {
  FakeGpu gpu;
  const auto store = Open();
  CHECK(*store->AwaitDone(1) >= 0);
  gpu.Say("busy 3\n");
  CHECK(*store->AwaitDone(60) > 0);
  CHECK(gpu.script() == "busy 0\n");
  gpu.Say("busy 1000000\n");
  CHECK(absl::IsDeadlineExceeded(store->AwaitDone(0.01).status()));
  gpu.Say("");
  CHECK(store->Health().ok());
}

TEST_CASE("while a GPU is shared nobody waits until it is idle, and it is healthy if it computes") {
  FakeGpu gpu;
  const auto store = Open();
  gpu.Say("busy 1000000\n");
  {
    const auto turn = HoldTurn(store->turn(), DeviceTurn::Kind::kShared);
    CHECK(*store->AwaitDone(1) == 0);
    CHECK(store->Health().ok());
  }
  CHECK(absl::IsDeadlineExceeded(store->AwaitDone(0.01).status()));
  gpu.Say("fail cuLaunchKernel 719\n");
  const auto turn = HoldTurn(store->turn(), DeviceTurn::Kind::kShared);
  CHECK(absl::IsInternal(store->Health()));
}

TEST_CASE("a cold GPU has its tensors as they were") {
  FakeGpu gpu;
  const auto store = Open();
  const auto memory = store->Make(3);
  REQUIRE(memory.ok());
  (*memory)->Write("abc", 0, 3);
  store->MakeCold();
  CHECK(std::string((*memory)->Read(0, 3), 3) == "abc");
  CHECK(store->Health().ok());
  gpu.Say("fail cuMemsetD8_v2 719\n");  // it has something written
  store->MakeCold();
  gpu.Say("");
  CHECK(absl::IsInternal(store->Health()));
}

TEST_CASE("nothing persists in the cache of a GPU that is made cold, and one without such a cache is well") {
  FakeGpu gpu;
  const auto store = Open();
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(driver != nullptr);
  const int* const num_resets = static_cast<int*>(dlsym(driver, "fake_cuda_num_cache_resets"));
  REQUIRE(num_resets != nullptr);
  const int before = *num_resets;
  store->MakeCold();
  CHECK(*num_resets == before + 1);
  gpu.Say("fail cuCtxResetPersistingL2Cache 801\n");
  store->MakeCold();
  CHECK(store->Health().ok());
}

}  // namespace
}  // namespace warpsmith
