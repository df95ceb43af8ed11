#include "trainer/update/policy_update.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

std::vector<int64_t> LengthsOf(const std::vector<TrainingSequence>& sequences) {
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  return lengths;
}

// Adds up the ranks' sums in rank order, so that every rank has the same.
absl::Status GatherSums(PolicyLossSums& sums, ControlPlane& control) {
  static_assert(std::is_trivially_copyable_v<PolicyLossSums>);
  std::string own(reinterpret_cast<const char*>(&sums), sizeof(sums));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, control.AllGather(std::move(own), "loss sums"));
  sums = {};
  for (const std::string& bytes : all) {
    PolicyLossSums part;
    WS_CHECK(bytes.size() == sizeof(part)) << bytes.size() << " bytes of loss sums";
    std::memcpy(&part, bytes.data(), sizeof(part));
    sums.Add(part);
  }
  return absl::OkStatus();
}

absl::StatusOr<SequenceLogProbs> LogProbsUnder(ModelTrainer& policy, PassWeights weights,
                                               const std::vector<TrainingSequence>& sequences,
                                               const SequenceIndices& indices, const PassOptions& options) {
  SequenceLogProbs log_probs(sequences.size());
  RETURN_IF_ERROR(ScoreTokens(policy, weights, sequences, indices, options, [&](const ScoredToken& token) {
    log_probs[token.sequence].push_back(token.log_prob);
  }));
  return log_probs;
}

}  // namespace

absl::StatusOr<PolicyLossSums> AccumulatePolicyGradient(
    ModelTrainer& policy, const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
    const PolicyUpdateOptions& options, const SequenceLogProbs* old, const SequenceLogProbs* reference) {
  const int64_t global_num_tokens = CountAnswerTokens(sequences);
  PolicyLossSums sums;
  const auto gradient = [&](const ScoredToken& token) {
    const TrainingSequence& sequence = sequences[token.sequence];
    TokenTerms terms{.log_prob = token.log_prob, .advantage = sequence.advantage};
    terms.old_log_prob = old == nullptr ? token.log_prob : (*old)[token.sequence][token.position];
    terms.worker_log_prob = sequence.worker_log_probs[token.position];
    terms.reference_log_prob =
        reference == nullptr ? token.log_prob : (*reference)[token.sequence][token.position];
    sums.entropy += token.entropy;
    return AddToken(terms, options.loss, global_num_tokens, sums);
  };
  RETURN_IF_ERROR(AccumulateGradients(policy, sequences, indices, options.pass, gradient));
  return sums;
}

absl::StatusOr<PolicyUpdateResult> UpdatePolicy(ModelTrainer& policy,
                                                const std::vector<TrainingSequence>& sequences,
                                                const PolicyUpdateOptions& options,
                                                Communicator& communicator, ControlPlane& control) {
  PolicyUpdateResult result;
  const auto parts = SplitEvenly(static_cast<int>(sequences.size()), options.num_updates);
  std::vector<std::vector<TrainingSequence>> batches;
  std::vector<std::optional<SequenceLogProbs>> old(parts.size());
  std::vector<SequenceIndices> own;
  for (size_t i = 0; i < parts.size(); ++i) {
    const SequenceIndices& part = parts[i];
    batches.emplace_back(sequences.begin() + part.front(), sequences.begin() + part.back() + 1);
    own.push_back(AssignToRanks(LengthsOf(batches[i]), communicator.size())[communicator.rank()]);
    if (parts.size() == 1) continue;
    ASSIGN_OR_RETURN(old[i], LogProbsUnder(policy, PassWeights::kPresent, batches[i], own[i], options.pass));
  }
  double norms_taken = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    std::optional<SequenceLogProbs> reference;
    if (options.loss.kl_weight > 0) {
      ASSIGN_OR_RETURN(reference,
                       LogProbsUnder(policy, PassWeights::kReference, batches[i], own[i], options.pass));
    }
    ASSIGN_OR_RETURN(PolicyLossSums sums, AccumulatePolicyGradient(policy, batches[i], own[i], options,
                                                                   old[i] ? &*old[i] : nullptr,
                                                                   reference ? &*reference : nullptr));
    RETURN_IF_ERROR(AllReduceGradients(policy, communicator));
    RETURN_IF_ERROR(GatherSums(sums, control));
    ASSIGN_OR_RETURN(const double norm, policy.Step(options.learning_rate));
    ++(std::isfinite(norm) ? result.num_taken : result.num_skipped);
    if (std::isfinite(norm)) norms_taken += norm;
    result.gradient_norm = result.num_taken > 0 ? norms_taken / result.num_taken : norm;
    result.sums.Add(sums);
  }
  return result;
}

}  // namespace warpsmith
