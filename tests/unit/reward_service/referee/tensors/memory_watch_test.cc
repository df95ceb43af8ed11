#include "reward_service/referee/tensors/memory_watch.h"

#include <atomic>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/held_turn.h"

namespace warpsmith {
namespace {

TEST_CASE("memory is watched while several share a GPU, and not beside one who has it alone") {
  FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  std::atomic<bool> has_begun = false;
  const MemoryWatch watch(store.get(), [&] { has_begun = true; });
  const auto was_seen = [&](const absl::Time since) {
    gpu.Say("free 10\n");
    absl::SleepFor(absl::Milliseconds(100));
    gpu.Say("");
    return store->WasScarceSince(since);
  };
  {
    const auto alone = HoldTurn(store->turn(), DeviceTurn::Kind::kAlone);
    CHECK_FALSE(was_seen(absl::Now()));
  }
  const auto first = HoldTurn(store->turn(), DeviceTurn::Kind::kShared);
  CHECK_FALSE(was_seen(absl::Now()));  // nobody is there who could take it
  const auto second = HoldTurn(store->turn(), DeviceTurn::Kind::kShared);
  CHECK(was_seen(absl::Now()));
  CHECK(has_begun);
  absl::SleepFor(absl::Milliseconds(20));
  CHECK_FALSE(store->WasScarceSince(absl::Now()));
}

}  // namespace
}  // namespace warpsmith
