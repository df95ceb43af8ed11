// The memory of tasks whose draws lie on the host, for the GPU has no room for them.
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/task/task_pool.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

// Tasks of puppets on a GPU that has no room for their draws, and a host that has room for some.
struct HostDrawsBench {
  HostDrawsBench() {
    limits.host_draw_bytes_max = int64_t{1} << 30;
    store->set_host_draw_bytes_max(limits.host_draw_bytes_max);
    {
      PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1, Place());
      REQUIRE(task.Examine().ok());
      limits.device_bytes_max = task.BytesIn(KeptIn::kDevice, TaskUse::kTiming) - 1;
    }
    PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1, Place());
    REQUIRE(task.Examine().ok());
    host_bytes = task.BytesIn(KeptIn::kHost, TaskUse::kTiming);
  }
  PlaceTask Place() const { return LaneTask::Place(zygote.get(), limits, 1, *store, facts); }
  std::unique_ptr<TaskPool> Pool(int64_t host_bytes_max) {
    limits.host_draw_bytes_max = host_bytes_max;
    return std::make_unique<TaskPool>(limits, zygote.get(), &PuppetLane(), Place(), 8);
  }

  const FakeGpu gpu;
  const std::unique_ptr<GpuStore> store = *GpuStore::Open(0);
  const std::unique_ptr<Zygote> zygote = StartPuppets();
  const RefereeFacts facts;
  TaskLimits limits = PuppetTaskLimits();
  int64_t host_bytes = 0;  // of one task
};

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

absl::StatusOr<std::shared_ptr<PooledTask>> Begin(TaskPool* pool, int number, absl::Time deadline = Soon()) {
  return pool->Begin({std::to_string(number), "class Model: pass"}, std::nullopt, /*another_follows=*/false,
                     deadline);
}

TEST_CASE(
    "of tasks whose draws lie on the host as many are kept as it has room for, and one that is refused has "
    "none") {
  HostDrawsBench bench;
  const auto judge = [&](TaskPool* pool, int number) -> std::weak_ptr<PooledTask> {
    const auto begun = Begin(pool, number);
    INFO(begun.status());
    REQUIRE(begun.ok());
    REQUIRE(pool->AwaitCompleted(*begun, Soon()).ok());
    CHECK(pool->GetExamined({"another", "class Model: pass"}, Soon()).ok());
    pool->End(*begun);
    return *begun;
  };
  const auto expires = [&](const std::weak_ptr<PooledTask>& task) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!task.expired() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return task.expired();
  };
  {
    const auto pool = bench.Pool(4 * bench.host_bytes - 1);
    const auto first = judge(pool.get(), 1), second = judge(pool.get(), 2), third = judge(pool.get(), 3),
               fourth = judge(pool.get(), 4);
    CHECK(expires(first));
    CHECK_FALSE(third.expired());
    CHECK_FALSE(fourth.expired());
  }
  CHECK(absl::IsInvalidArgument(Begin(bench.Pool(bench.host_bytes - 1).get(), 5).status()));
}

TEST_CASE("a task for whose draws the host has no room waits until those of others have gone") {
  HostDrawsBench bench;
  const auto pool = bench.Pool(2 * bench.host_bytes - 1);
  auto first = Begin(pool.get(), 1);
  REQUIRE(first.ok());
  CHECK(absl::IsResourceExhausted(Begin(pool.get(), 2, absl::Now() + absl::Milliseconds(300)).status()));
  std::thread other([&] {
    auto second = Begin(pool.get(), 2);
    CHECK(second.status() == absl::OkStatus());
    if (!second.ok()) return;
    CHECK(pool->AwaitCompleted(*second, Soon()).ok());
    pool->End(*std::move(second));
  });
  CHECK(pool->AwaitCompleted(*first, Soon()).ok());
  pool->End(*std::move(first));
  other.join();
}

TEST_CASE("judgements of a task with draws on the host follow each other, and need no more there than one") {
  HostDrawsBench bench;
  bench.store->set_host_draw_bytes_max(bench.host_bytes);
  const auto pool = bench.Pool(2 * bench.host_bytes);  // before it is examined a task may need more
  for (int round = 0; round < 3; ++round) {
    auto first = Begin(pool.get(), 1);
    REQUIRE(first.status() == absl::OkStatus());
    std::thread other([&] {
      auto second = Begin(pool.get(), 1);
      CHECK(second.status() == absl::OkStatus());
      if (!second.ok()) return;
      CHECK(pool->AwaitCompleted(*second, Soon()) == absl::OkStatus());
      pool->End(*std::move(second));
    });
    CHECK(pool->AwaitCompleted(*first, Soon()) == absl::OkStatus());
    pool->End(*std::move(first));
    other.join();
  }
}

}  // namespace
}  // namespace warpsmith
