// An engine whose GPU hangs in a call that has no deadline of its own.
#include "absl/synchronization/notification.h"
#include "rollout_workers/engine.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {

TEST_CASE("a GPU that hangs while it gives memory back is lost, and nobody waits for it") {
  const auto go_on = std::make_shared<absl::Notification>();
  absl::Notification lost;
  {
    const auto state = std::make_shared<FakeStepDeviceState>();
    state->call_timeout = absl::Seconds(2);
    const EngineOptions options{.num_slots = 4, .context_tokens_max = 64};
    EngineEvents events{.on_sample = [](FinishedSample) {},
                        .on_failure = [](FailedJob) {},
                        .on_token = nullptr,
                        .on_lost = [&lost] { lost.Notify(); }};
    Engine engine(Tiny(), options, std::move(events), MakeFakeDeviceBatch(Tiny(), options, state));
    LoadedWeights weights;
    weights.random_seed = 1;
    REQUIRE(engine.SwapWeights(weights, absl::InfiniteFuture()).ok());
    state->hangs_until = go_on;
    const absl::Status asleep = engine.Sleep(SleepDepth::kPagesAndWeights);
    CHECK(absl::IsUnavailable(asleep));
    CHECK_THAT(std::string(asleep.message()), Catch::Contains("cuda:3 is lost to this process"));
    CHECK(lost.WaitForNotificationWithTimeout(absl::Seconds(60)));
    CHECK(absl::IsUnavailable(engine.Submit(Job(1, {Group(0, 1, 5)}))));
    CHECK(absl::IsUnavailable(engine.SwapWeights(weights, absl::InfiniteFuture())));
  }
  go_on->Notify();
}

}  // namespace warpsmith
