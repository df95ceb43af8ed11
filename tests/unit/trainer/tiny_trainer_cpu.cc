#include "core/base/check.h"
#include "core/model/training/cpu_trainer.h"
#include "tests/unit/trainer/tiny_trainer.h"

namespace warpsmith {

const int kNumKillMoments = 3;

std::unique_ptr<ModelTrainer> MakeTinyTrainer(const ParameterLayout& layout) {
  auto trainer = std::make_unique<CpuTrainer>(layout, ModelTrainerOptions{}, nullptr);
  WS_CHECK(trainer->InitRandom(3).ok());
  return trainer;
}

}  // namespace warpsmith
