// The model that a tiny run trains: tests of the phases are built once for the CPU and once for a GPU made of the host.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_TINY_TRAINER_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_TINY_TRAINER_H_

#include <memory>

#include "core/model/training/model_trainer.h"

namespace warpsmith {

// Defined in tiny_trainer_cpu.cc and tiny_trainer_cuda.cc. Random weights, the same each time.
std::unique_ptr<ModelTrainer> MakeTinyTrainer(const ParameterLayout& layout);

// Moments at which a run is killed. Where runs on a CPU are killed as well, elsewhere, there are few.
extern const int kNumKillMoments;

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_TINY_TRAINER_H_
