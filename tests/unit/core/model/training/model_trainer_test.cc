#include "core/model/training/model_trainer.h"

#include <cmath>

#include "core/model/training/cpu_trainer.h"
#include "tests/support/catch.h"
#include "tests/unit/core/model/training/trainer_fixture.h"

namespace warpsmith {
namespace {

Parameters SmallModel() { return RandomParameters(FamilyConfigs().front().config, at::kFloat); }

}  // namespace

TEST_CASE("the norm is that of all gradients, and clipping bounds the step, not the norm that is told") {
  const Parameters weights = SmallModel();
  const PackedBatch packed = RandomBatch(weights.config(), {5, 9}, 9);
  std::vector<std::vector<float>> moments;
  std::vector<double> norms;
  for (const double norm_max : {1e9, 0.5}) {
    CpuTrainer trainer(weights.layout(), {.optimiser = {.gradient_norm_max = norm_max}}, nullptr);
    REQUIRE(trainer.SetWeights(weights).ok());
    AccumulateLoss(trainer, packed);
    double squares = 0;
    REQUIRE(trainer
                .VisitGradients([&](const at::Tensor& gradient) {
                  squares += std::pow(gradient.norm().item<double>(), 2);
                  return absl::OkStatus();
                })
                .ok());
    norms.push_back(trainer.Step(1e-3).value());
    CHECK(norms.back() == Approx(std::sqrt(squares)).epsilon(1e-5));
    moments.push_back(ReadAll(trainer, StateSet::kFirstMoment));
  }
  CHECK(norms[0] == norms[1]);
  REQUIRE(norms[0] > 0.5);
  const double scale = 0.5 / norms[0];
  for (size_t i = 0; i < moments[0].size(); i += 97) {
    CHECK(moments[1][i] == Approx(moments[0][i] * scale).epsilon(1e-4).margin(1e-12));
  }
}

TEST_CASE("a trainer on the CPU offers no memory of a GPU") {
  CpuTrainer trainer(SmallModel().layout(), {}, nullptr);
  CHECK_FALSE(trainer.can_offer());
  CHECK(absl::IsUnimplemented(trainer.Offer(1, "/tmp/none.sock", absl::InfiniteFuture()).status()));
}

}  // namespace warpsmith
