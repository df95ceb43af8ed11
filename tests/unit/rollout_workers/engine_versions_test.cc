// An engine whose samples go on with other weights: one version never names two.
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "rollout_workers/engine.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

LoadedWeights Weights(uint64_t version, uint64_t seed) {
  LoadedWeights weights{.policy_version = version, .sha256 = "of seed " + std::to_string(seed)};
  weights.random_seed = seed;
  return weights;
}

}  // namespace

TEST_CASE(
    "after a deep sleep other weights under a version that drew tokens are refused, and its own are not") {
  absl::Notification begun, hurried, finished;
  const EngineOptions options{.num_slots = 4, .context_tokens_max = 512};
  EngineEvents events{.on_sample = [&](const FinishedSample&) { finished.Notify(); },
                      .on_failure = [](const FailedJob& job) { FAIL_CHECK(job.status.ToString()); },
                      .on_token =
                          [&](const DrawnToken&) {
                            if (!begun.HasBeenNotified()) begun.Notify();
                            hurried.WaitForNotificationWithTimeout(absl::Milliseconds(2));
                          },
                      .on_lost = nullptr};
  Engine engine(Tiny(), options, std::move(events),
                MakeFakeDeviceBatch(Tiny(), options, std::make_shared<FakeStepDeviceState>()));
  const auto swap = [&](const LoadedWeights& weights, paged::EntriesOnChange entries) {
    return engine.SwapWeights(weights, absl::Now() + kPatience, entries);
  };
  REQUIRE(swap(Weights(0, 1), paged::EntriesOnChange::kRequireNone).ok());
  GenerationJob job = Job(1, {Group(1, 1, 5)}, 400);
  job.reports_tokens = true;
  REQUIRE(engine.Submit(job).ok());
  REQUIRE(begun.WaitForNotificationWithTimeout(kPatience));
  REQUIRE(engine.Sleep(SleepDepth::kPagesAndWeights).ok());
  REQUIRE(engine.Wake().ok());
  CHECK(absl::IsFailedPrecondition(swap(Weights(0, 2), paged::EntriesOnChange::kRecompute)));
  CHECK(absl::IsFailedPrecondition(swap(Weights(0, 2), paged::EntriesOnChange::kKeep)));
  CHECK(swap(Weights(0, 1), paged::EntriesOnChange::kRecompute).ok());
  CHECK(swap(Weights(1, 2), paged::EntriesOnChange::kKeep).ok());
  CHECK(absl::IsFailedPrecondition(swap(Weights(0, 2), paged::EntriesOnChange::kKeep)));
  hurried.Notify();
  CHECK(finished.WaitForNotificationWithTimeout(kPatience));
  CHECK(swap(Weights(0, 2), paged::EntriesOnChange::kKeep).ok());  // nothing is under way any more
}

}  // namespace warpsmith
