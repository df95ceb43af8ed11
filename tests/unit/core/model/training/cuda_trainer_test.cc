// On a GPU made of the host.
#include "core/model/training/cuda_trainer.h"

#include "core/checkpoint/tensor_directory.h"
#include "core/kernels/bfloat16.h"
#include "core/model/hugging_face_weights.h"
#include "core/model/mapped_weights_cuda.h"
#include "core/model/training/cpu_trainer.h"
#include "tests/support/host_attention.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/model/training/trainer_fixture.h"

namespace warpsmith {
namespace {

ModelConfig PaddedConfig() {
  ModelConfig config = FamilyConfigs().front().config;
  config.vocab_size = 104;
  return config;
}

std::unique_ptr<CudaTrainer> MakeTrainer(const ParameterLayout& layout) {
  auto trainer =
      CudaTrainer::Create(layout, {}, /*device=*/0, std::make_unique<HostAttention<__nv_bfloat16>>());
  INFO(trainer.status());
  REQUIRE(trainer.ok());
  return *std::move(trainer);
}

TEST_CASE("a trainer on a GPU steps, keeps its state by range, and goes on from it to the bit") {
  const Parameters weights = RandomParameters(PaddedConfig(), at::kFloat);
  CheckStepAndState([&] { return MakeTrainer(weights.layout()); }, weights,
                    RandomBatch(weights.config(), {5, 9, 2}, 9));
}

TEST_CASE("a few steps on a GPU follow the CPU's, and the CPU goes on from their state") {
  const Parameters weights = RandomParameters(PaddedConfig(), at::kFloat);
  const PackedBatch packed = RandomBatch(weights.config(), {5, 9, 2}, 9);
  const auto on_gpu = MakeTrainer(weights.layout());
  CpuTrainer on_cpu(weights.layout(), {}, nullptr);
  for (ModelTrainer* const trainer :
       {static_cast<ModelTrainer*>(on_gpu.get()), static_cast<ModelTrainer*>(&on_cpu)}) {
    REQUIRE(trainer->SetWeights(weights).ok());
  }
  const std::vector<double> ours = Steps(*on_gpu, packed, 3), theirs = Steps(on_cpu, packed, 3);
  for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(theirs[i]).epsilon(0.05));
  REQUIRE(on_cpu.SetWeights(on_gpu->HostWeights().value()).ok());
  CHECK(ReadAll(on_cpu, StateSet::kWeights) == ReadAll(*on_gpu, StateSet::kWeights));
}

TEST_CASE("what a trainer offers is what it computes with, also after a step") {
  const TemporaryDirectory folder;
  const Parameters weights = RandomParameters(PaddedConfig(), at::kFloat);
  const auto trainer = MakeTrainer(weights.layout());
  REQUIRE(trainer->SetWeights(weights).ok());
  const PackedBatch packed = RandomBatch(weights.config(), {5, 9, 2}, 9);
  for (uint64_t version = 1; version <= 2; ++version) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    const auto offered = trainer->Offer(version, folder.path() / "weights", deadline);
    INFO(offered.status());
    REQUIRE(offered.ok());
    const auto mapped = MappedWeights::Open(weights.config(), *offered, /*device=*/0, deadline);
    INFO(mapped.status());
    REQUIRE(mapped.ok());
    std::vector<uint16_t> bits((*mapped)->num_elements());
    REQUIRE((*mapped)->CopyTo(bits.data(), 0, deadline).ok());
    const std::vector<float> masters = ReadAll(*trainer, StateSet::kWeights);
    REQUIRE(bits.size() >= masters.size());
    for (size_t i = 0; i < masters.size(); ++i) {
      if (bits[i] != Bfloat16Bits(masters[i])) FAIL("element " << i << " of version " << version);
    }
    Steps(*trainer, packed, 1);
  }
}

TEST_CASE("weights of a folder arrive in float32 as they are, and rounded where passes read them") {
  const TemporaryDirectory folder;
  const Parameters weights = RandomParameters(PaddedConfig(), at::kFloat);
  REQUIRE(WriteTensorDirectory(folder.path(), HuggingFaceTensors(weights.layout(), {}), 1 << 20,
                               HuggingFaceSource(weights))
              .ok());
  const auto trainer = MakeTrainer(weights.layout()), other = MakeTrainer(weights.layout());
  REQUIRE(trainer->LoadHuggingFace(folder.path()).ok());
  REQUIRE(other->SetWeights(weights).ok());
  CHECK(ReadAll(*trainer, StateSet::kWeights) == ReadAll(*other, StateSet::kWeights));
  const ScoredBatch batch = NextTokens(RandomBatch(weights.config(), {5, 9, 2}, 9));
  CHECK(trainer->Score(PassWeights::kPresent, batch)->log_probs ==
        other->Score(PassWeights::kPresent, batch)->log_probs);
  CHECK_FALSE(trainer->LoadHuggingFace(folder.path() / "none").ok());
}

TEST_CASE("Muon is refused by name") {
  const Parameters weights = RandomParameters(PaddedConfig(), at::kFloat);
  const auto trainer = MakeTrainer(weights.layout());
  const absl::Status status = trainer->Step(1e-3, MatrixUpdate::kMuon).status();
  CHECK(absl::IsUnimplemented(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("Muon"));
}

}  // namespace
}  // namespace warpsmith
