#include "core/base/check.h"
#include "core/model/training/cuda_trainer.h"
#include "tests/support/host_attention.h"
#include "tests/unit/trainer/tiny_trainer.h"

namespace warpsmith {

const int kNumKillMoments = 20;

std::unique_ptr<ModelTrainer> MakeTinyTrainer(const ParameterLayout& layout) {
  auto trainer =
      CudaTrainer::Create(layout, {}, /*device=*/0, std::make_unique<HostAttention<__nv_bfloat16>>());
  WS_CHECK(trainer.ok()) << trainer.status();
  WS_CHECK((*trainer)->InitRandom(3).ok());
  return *std::move(trainer);
}

}  // namespace warpsmith
