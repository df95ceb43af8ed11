// Weights, batches and losses for tests of a trainer on the CPU and on a GPU.
#ifndef WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_TRAINER_FIXTURE_H_
#define WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_TRAINER_FIXTURE_H_

#include <limits>
#include <string>
#include <vector>

#include "core/model/training/model_trainer.h"
#include "tests/support/catch.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {

// Adds the gradient of the fixture's loss, times `scale`.
inline void AccumulateLoss(ModelTrainer& trainer, const PackedBatch& packed, double scale = 1.0) {
  const absl::Status status = trainer.Accumulate(NextTokens(packed), [&](const RowScores&) {
    std::vector<double> weights = LossWeights(packed);
    for (double& weight : weights) weight *= scale;
    return weights;
  });
  INFO(status);
  REQUIRE(status.ok());
}

inline std::vector<float> ReadAll(ModelTrainer& trainer, StateSet set) {
  std::vector<float> all;
  for (int buffer = 0; buffer < trainer.layout().num_buffers(); ++buffer) {
    const size_t first = all.size();
    all.resize(first + trainer.layout().buffers()[buffer].size);
    REQUIRE(trainer.Read(set, buffer, 0, absl::MakeSpan(all).subspan(first)).ok());
  }
  return all;
}

// Runs steps with one gradient each and returns their norms.
inline std::vector<double> Steps(ModelTrainer& trainer, const PackedBatch& packed, int count) {
  std::vector<double> norms;
  for (int step = 0; step < count; ++step) {
    AccumulateLoss(trainer, packed);
    norms.push_back(trainer.Step(1e-3).value());
  }
  return norms;
}

// `make` returns a trainer of zeros of one layout, another at each call.
template <typename Make>
void CheckStepAndState(Make make, const Parameters& weights, const PackedBatch& packed) {
  const auto trainer = make();
  REQUIRE(trainer->SetWeights(weights).ok());
  CHECK(ReadAll(*trainer, StateSet::kFirstMoment) ==
        std::vector<float>(ReadAll(*trainer, StateSet::kWeights).size()));

  INFO("a gradient that is not finite changes nothing, and is forgotten");
  const std::vector<float> before = ReadAll(*trainer, StateSet::kWeights);
  AccumulateLoss(*trainer, packed, std::numeric_limits<double>::infinity());
  CHECK_FALSE(std::isfinite(trainer->Step(1e-3).value()));
  CHECK(ReadAll(*trainer, StateSet::kWeights) == before);
  CHECK(trainer->num_steps() == 0);

  const double norm = Steps(*trainer, packed, 1).front();
  CHECK(std::isfinite(norm));
  CHECK(norm > 0);
  CHECK(trainer->num_steps() == 1);
  CHECK(ReadAll(*trainer, StateSet::kWeights) != before);

  INFO("another trainer goes on from the state to the same bits");
  const auto other = make();
  for (const StateSet set : {StateSet::kWeights, StateSet::kFirstMoment, StateSet::kSecondMoment}) {
    const std::vector<float> values = ReadAll(*trainer, set);
    size_t first = 0;
    for (int buffer = 0; buffer < trainer->layout().num_buffers(); ++buffer) {
      const size_t size = trainer->layout().buffers()[buffer].size;
      // In two ranges.
      const absl::Span<const float> part(values.data() + first, size);
      REQUIRE(other->Write(set, buffer, 0, part.subspan(0, size / 2)).ok());
      REQUIRE(other->Write(set, buffer, static_cast<int64_t>(size / 2), part.subspan(size / 2)).ok());
      first += size;
    }
  }
  other->set_num_steps(trainer->num_steps());
  CHECK(Steps(*trainer, packed, 3) == Steps(*other, packed, 3));
  for (const StateSet set : {StateSet::kWeights, StateSet::kFirstMoment, StateSet::kSecondMoment}) {
    CHECK(ReadAll(*trainer, set) == ReadAll(*other, set));
  }

  INFO("the reference stays while the weights move");
  CHECK_FALSE(trainer->has_reference());
  REQUIRE(trainer->KeepReference().ok());
  const ScoredBatch batch = NextTokens(packed);
  const std::vector<double> kept = trainer->Score(PassWeights::kPresent, batch).value().log_probs;
  Steps(*trainer, packed, 1);
  CHECK(trainer->Score(PassWeights::kReference, batch).value().log_probs == kept);
  CHECK(trainer->Score(PassWeights::kPresent, batch).value().log_probs != kept);

  REQUIRE(trainer->ResetOptimiser().ok());
  CHECK(trainer->num_steps() == 0);
  const std::vector<float> moment = ReadAll(*trainer, StateSet::kSecondMoment);
  CHECK(moment == std::vector<float>(moment.size()));
  const Parameters host = trainer->HostWeights().value();
  std::vector<float> values;
  for (int i = 0; i < host.num_buffers(); ++i) {
    const float* const data = host.buffer(i).const_data_ptr<float>();
    values.insert(values.end(), data, data + host.buffer(i).numel());
  }
  CHECK(values == ReadAll(*trainer, StateSet::kWeights));
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_TRAINER_FIXTURE_H_
