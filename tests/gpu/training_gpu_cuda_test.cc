// A trainer on a GPU beside one on the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/trainer/policy_batch.h"
#include "trainer/update/policy_update.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {
namespace {

// A model with heads that attention takes, and a head that is padded.
ModelConfig SmallModel() {
  ModelConfig config = TinyModel();
  config.vocab_size = 64;
  config.hidden_size = 256;
  config.intermediate_size = 512;
  config.head_dim = 64;
  return config;
}

const ModelTrainerOptions kOptions = {.num_token_ids = 48};

std::unique_ptr<ModelTrainer> Weighted(std::unique_ptr<ModelTrainer> trainer) {
  Parameters weights(trainer->layout());
  weights.InitRandom(3);
  REQUIRE(trainer->SetWeights(weights).ok());
  return trainer;
}

std::unique_ptr<ModelTrainer> OnGpu() {
  const auto gpu = TrainingGpu::Open(0);
  INFO(gpu.status());
  REQUIRE(gpu.ok());
  auto trainer = (*gpu)->MakeTrainer(ParameterLayout(SmallModel()), kOptions, /*deterministic=*/true);
  INFO(trainer.status());
  REQUIRE(trainer.ok());
  return Weighted(*std::move(trainer));
}

std::unique_ptr<ModelTrainer> OnCpu() {
  return Weighted(std::make_unique<CpuTrainer>(ParameterLayout(SmallModel()), kOptions, nullptr));
}

std::vector<float> Read(ModelTrainer& trainer, StateSet set) {
  std::vector<float> all;
  for (int buffer = 0; buffer < trainer.layout().num_buffers(); ++buffer) {
    const size_t first = all.size();
    all.resize(first + trainer.layout().buffers()[buffer].size);
    REQUIRE(trainer.Read(set, buffer, 0, absl::MakeSpan(all).subspan(first)).ok());
  }
  return all;
}

PolicyUpdateResult Update(ModelTrainer& trainer, const PolicyUpdateOptions& options) {
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  const auto result = UpdatePolicy(trainer, MakeBatch(), options, *communicator, *control);
  INFO(result.status());
  REQUIRE(result.ok());
  return *result;
}

// |a - b| / |b|.
double Error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  REQUIRE(size > 0);
  return std::sqrt(difference / size);
}

TEST_CASE("an update's gradient on a GPU is the CPU's but for bfloat16, in one pack and in micro-batches") {
  const auto on_cpu = OnCpu();
  PolicyUpdateOptions options = MakeOptions();
  const PolicyUpdateResult theirs = Update(*on_cpu, options);
  for (const int64_t tokens : {1 << 20, 30}) {
    const auto on_gpu = OnGpu();
    options.pass.micro_batch_tokens = tokens;
    const PolicyUpdateResult ours = Update(*on_gpu, options);
    CHECK(ours.gradient_norm == Approx(theirs.gradient_norm).epsilon(0.02));
    CHECK(ours.sums.loss == Approx(theirs.sums.loss).epsilon(0.02));
    // After one step the first moment is the gradient, scaled.
    const double error = Error(Read(*on_gpu, StateSet::kFirstMoment), Read(*on_cpu, StateSet::kFirstMoment));
    std::printf("error of the gradient %.4f\n", error);
    CHECK(error < 0.03);
  }
}

TEST_CASE("several updates of two trainers on a GPU give the same bits, and log-probs of a reference") {
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    const auto trainer = OnGpu();
    REQUIRE(trainer->KeepReference().ok());
    PolicyUpdateOptions options = MakeOptions();
    options.num_updates = 2;
    options.loss.kl_weight = 0.1;
    for (int step = 0; step < 3; ++step) {
      const PolicyUpdateResult result = Update(*trainer, options);
      CHECK(result.num_taken == 2);
      CHECK((step == 0 || result.sums.kl > 0));
    }
    weights.push_back(Read(*trainer, StateSet::kWeights));
    for (const StateSet set : {StateSet::kFirstMoment, StateSet::kSecondMoment}) {
      const std::vector<float> moment = Read(*trainer, set);
      weights.back().insert(weights.back().end(), moment.begin(), moment.end());
    }
  }
  CHECK(weights[0] == weights[1]);
}

}  // namespace
}  // namespace warpsmith
