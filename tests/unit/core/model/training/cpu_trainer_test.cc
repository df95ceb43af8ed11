#include "core/model/training/cpu_trainer.h"

#include "tests/support/catch.h"
#include "tests/unit/core/model/training/trainer_fixture.h"

namespace warpsmith {

TEST_CASE("a trainer on the CPU steps, keeps its state by range, and goes on from it to the bit") {
  const Parameters weights = RandomParameters(FamilyConfigs().front().config, at::kFloat);
  CheckStepAndState(
      [&] { return std::make_unique<CpuTrainer>(weights.layout(), ModelTrainerOptions{}, nullptr); }, weights,
      RandomBatch(weights.config(), {5, 9, 2}, 9));
}

TEST_CASE("weights of a trainer on the CPU are its own on the host") {
  const Parameters weights = RandomParameters(FamilyConfigs().front().config, at::kFloat);
  CpuTrainer trainer(weights.layout(), {}, nullptr);
  const Parameters own = trainer.HostWeights().value();
  own.buffer(1).detach().fill_(2.0);
  CHECK(ReadAll(trainer, StateSet::kWeights)[weights.layout().buffers()[0].size] == 2.0f);
}

}  // namespace warpsmith
