#include "reward_service/referee/tensors/lacking_memory.h"

#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

const absl::Status kLacking = absl::ResourceExhaustedError("no memory");

TEST_CASE("a GPU is lost where memory is wanting again and again and scarce when all is given back") {
  FakeGpu gpu("free 20\n");
  const auto store = *GpuStore::Open(0);
  LackingMemory lacking(store.get(), 2, absl::Milliseconds(200));
  CHECK_FALSE(lacking.IsLostAfter(kLacking));
  CHECK_FALSE(lacking.IsLostAfter(absl::OkStatus()));
  CHECK_FALSE(lacking.IsLostAfter(kLacking));
  CHECK_FALSE(lacking.IsLostAfter(absl::DeadlineExceededError("late")));
  CHECK_FALSE(lacking.IsLostAfter(kLacking));
  CHECK(lacking.IsLostAfter(kLacking));
}

TEST_CASE("who needs more memory than there is ends no referee, however often it is asked for") {
  FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  LackingMemory lacking(store.get(), 2);
  for (int i = 0; i < 20; ++i) CHECK_FALSE(lacking.IsLostAfter(kLacking));
}

TEST_CASE("on a host, which nobody can look at, as many in a row are enough") {
  LackingMemory lacking(&HostStore(), 2);
  CHECK_FALSE(lacking.IsLostAfter(kLacking));
  CHECK(lacking.IsLostAfter(kLacking));
}

}  // namespace
}  // namespace warpsmith
