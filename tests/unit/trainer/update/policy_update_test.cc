// The gradient of a batch does not depend on how it is cut; tests/integration/trainer_test.py spreads it over
// processes.
#include "trainer/update/policy_update.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {
namespace {

// All gradients, one after the other.
std::vector<double> GradientOf(const std::vector<TrainingSequence>& sequences,
                               const std::vector<SequenceIndices>& passes, int64_t micro_batch_tokens) {
  const auto policy = MakePolicy(at::kDouble);
  PolicyUpdateOptions options = MakeOptions();
  options.pass.micro_batch_tokens = micro_batch_tokens;
  for (const SequenceIndices& indices : passes) {
    const auto sums = AccumulatePolicyGradient(*policy, sequences, indices, options, nullptr, nullptr);
    INFO(sums.status());
    REQUIRE(sums.ok());
  }
  return GradientsOf(policy->weights());
}

// Largest difference, relative to the largest gradient.
double Difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  REQUIRE(largest > 0);
  return difference / largest;
}

}  // namespace

TEST_CASE("the gradient is the same in one pack, in micro-batches, one by one and in parts of ranks") {
  const auto sequences = MakeBatch();
  const SequenceIndices all = SplitEvenly(static_cast<int>(sequences.size()), 1).front();
  const std::vector<double> whole = GradientOf(sequences, {all}, 1 << 20);
  CHECK(Difference(whole, GradientOf(sequences, {all}, 40)) < 1e-9);
  CHECK(Difference(whole, GradientOf(sequences, {all}, 1)) < 1e-9);
  CHECK(Difference(whole, GradientOf(sequences, {{5, 1}, {0, 3}, {2, 4}}, 30)) < 1e-9);
}

TEST_CASE("the loss is normalised by all answer tokens, not by those of a micro-batch") {
  const auto policy = MakePolicy(at::kDouble);
  const auto sequences = MakeBatch();
  PolicyLossSums sums;
  for (int index = 0; index < static_cast<int>(sequences.size()); ++index) {
    const auto part = AccumulatePolicyGradient(*policy, sequences, {index}, MakeOptions(), nullptr, nullptr);
    REQUIRE(part.ok());
    sums.Add(*part);
  }
  // On policy every token's surrogate is the advantage times the weight between worker and trainer.
  CHECK(sums.num_tokens == CountAnswerTokens(sequences));
  double expected = 0;
  const auto again = MakePolicy(at::kDouble);
  const SequenceIndices all = SplitEvenly(static_cast<int>(sequences.size()), 1).front();
  REQUIRE(ScoreTokens(*again, PassWeights::kPresent, sequences, all, MakeOptions().pass,
                      [&](const ScoredToken& token) {
                        const TrainingSequence& sequence = sequences[token.sequence];
                        const double weight =
                            std::exp(token.log_prob - sequence.worker_log_probs[token.position]);
                        expected -= std::min(weight, 2.0) * sequence.advantage;
                      })
              .ok());
  CHECK(sums.loss == Approx(expected / static_cast<double>(sums.num_tokens)).epsilon(1e-9));
}

TEST_CASE("an update repeats to the bit") {
  std::vector<std::string> weights;
  for (int run = 0; run < 2; ++run) {
    const auto policy = MakePolicy();
    const auto control = MakeLoneControlPlane();
    const auto communicator = MakeLoneCommunicator(*control);
    for (int step = 0; step < 3; ++step) {
      REQUIRE(UpdatePolicy(*policy, MakeBatch(), MakeOptions(), *communicator, *control).ok());
    }
    weights.push_back(BytesOf(policy->weights()));
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("several optimiser steps keep the old policy of the step's start") {
  const auto policy = MakePolicy();
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  PolicyUpdateOptions options = MakeOptions();
  options.num_updates = 3;
  options.learning_rate = 0.05;  // far enough for the ratio to leave 1
  const auto result = UpdatePolicy(*policy, MakeBatch(), options, *communicator, *control);
  REQUIRE(result.ok());
  CHECK(policy->num_steps() == 3);
  CHECK(result->sums.old_kl > 1e-6);
  CHECK(result->sums.num_tokens == CountAnswerTokens(MakeBatch()));
}

TEST_CASE("an update raises the log-probability of what was better and lowers that of what was worse") {
  const auto policy = MakePolicy();
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  const auto sequences = MakeBatch();
  const SequenceIndices all = SplitEvenly(static_cast<int>(sequences.size()), 1).front();
  const auto score = [&] {
    double sum = 0;
    REQUIRE(ScoreTokens(*policy, PassWeights::kPresent, sequences, all, MakeOptions().pass,
                        [&](const ScoredToken& token) {
                          sum += token.log_prob * sequences[token.sequence].advantage;
                        })
                .ok());
    return sum;
  };
  const double before = score();
  REQUIRE(UpdatePolicy(*policy, sequences, MakeOptions(), *communicator, *control).ok());
  CHECK(score() > before);
}

}  // namespace warpsmith
