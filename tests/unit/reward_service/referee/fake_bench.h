// Judgements on a fake device, of a task that puppets prepare.
#ifndef WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_FAKE_BENCH_H_
#define WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_FAKE_BENCH_H_

#include <memory>

#include "reward_service/measure/referee.h"
#include "reward_service/referee/judge.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {

struct FakeBench {
  explicit FakeBench(const nlohmann::json& script = nlohmann::json::object())
      : zygote(StartPuppets(script)),
        pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 1) {}

  absl::StatusOr<v1::Measurement> TryRun() {
    const JudgeTools tools{&pool, DevicesOf(&machine)};
    return Judge(tools, request, absl::Now() + absl::Seconds(60)).Run();
  }
  v1::Grade Run() {
    const auto measurement = TryRun();
    REQUIRE(measurement.ok());
    CHECK(machine.num_alive == 0);
    return measurement->grade();
  }

  const std::unique_ptr<Zygote> zygote;
  FakeMachine machine;
  TaskPool pool;
  JudgeRequest request = PuppetRequest(CandidateKind::kNative);
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_FAKE_BENCH_H_
