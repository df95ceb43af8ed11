// An engine on the CPU that is given weights which are no numbers.
#include <cmath>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/model/parameters.h"
#include "rollout_workers/engine.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {

TEST_CASE("a job of weights that are no numbers fails as such, and the next weights serve") {
  constexpr absl::Duration kPatience = absl::Seconds(60);
  absl::Notification failed, finished;
  absl::Status why;
  EngineEvents events{.on_sample = [&](const FinishedSample&) { finished.Notify(); },
                      .on_failure =
                          [&](const FailedJob& job) {
                            why = job.status;
                            failed.Notify();
                          },
                      .on_token = nullptr,
                      .on_lost = nullptr};
  Engine engine(Tiny(), {.num_slots = 2, .context_tokens_max = 64}, std::move(events));
  Parameters broken{ParameterLayout(Tiny())};
  broken.InitRandom(1);
  static_cast<float*>(broken.buffer(1).mutable_data_ptr())[0] = std::nanf("");
  REQUIRE(engine.SwapWeights(InitialWeights(std::move(broken)), absl::Now() + kPatience).ok());
  REQUIRE(engine.Submit(Job(1, {Group(0, 2, 5)})).ok());
  REQUIRE(failed.WaitForNotificationWithTimeout(kPatience));
  CHECK(absl::IsInternal(why));
  CHECK_THAT(std::string(why.message()), Catch::Contains("publish sound weights"));
  REQUIRE(engine.SwapWeights(RandomWeights(Tiny(), 1), absl::Now() + kPatience).ok());
  REQUIRE(engine.Submit(Job(2, {Group(0, 1, 5)})).ok());
  CHECK(finished.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace warpsmith
