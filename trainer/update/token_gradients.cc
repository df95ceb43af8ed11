#include "trainer/update/token_gradients.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Sequences laid end to end, with their answer tokens as targets.
struct PackedSequences {
  ScoredBatch batch;
  std::vector<ScoredToken> answers;  // by row of targets >= 0
  std::vector<int64_t> rows;         // of answers
};

PackedSequences Pack(const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                     double temperature) {
  PackedSequences packed{.batch = {.temperature = temperature}};
  std::vector<int64_t>& targets = packed.batch.targets;
  for (const int index : indices) {
    const TrainingSequence& sequence = sequences[index];
    const int64_t first_row = static_cast<int64_t>(targets.size());
    packed.batch.packed.Append({sequence.tokens.begin(), sequence.tokens.end()});
    targets.resize(first_row + sequence.num_tokens(), -1);
    for (int position = 0; position < sequence.num_answer_tokens(); ++position) {
      const int64_t row = first_row + sequence.num_prompt_tokens + position - 1;
      targets[row] = sequence.tokens[sequence.num_prompt_tokens + position];
      packed.answers.push_back({.sequence = index, .position = position});
      packed.rows.push_back(row);
    }
  }
  return packed;
}

// Fills in what the model said of each answer token.
void ReadScores(const RowScores& scores, PackedSequences& packed) {
  for (size_t i = 0; i < packed.answers.size(); ++i) {
    packed.answers[i].log_prob = scores.log_probs[packed.rows[i]];
    packed.answers[i].entropy = scores.entropies[packed.rows[i]];
  }
}

absl::Status RunMicroBatch(ModelTrainer& trainer, PackedSequences packed, TokenGradient gradient) {
  return trainer.Accumulate(packed.batch, [&](const RowScores& scores) {
    ReadScores(scores, packed);
    std::vector<double> gradients(scores.log_probs.size());
    for (size_t i = 0; i < packed.answers.size(); ++i)
      gradients[packed.rows[i]] = gradient(packed.answers[i]);
    return gradients;
  });
}

std::vector<SequenceIndices> MicroBatches(const std::vector<TrainingSequence>& sequences,
                                          const SequenceIndices& indices, int64_t tokens_max) {
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  return PackMicroBatches(lengths, indices, tokens_max);
}

absl::Status WithWayOut(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      "a pass has not the memory that it needs: lower trainer.micro_batch_tokens, choose a "
      "trainer.recomputation that keeps less, or leave the trainer more (a worker on the same GPU takes "
      "the share that rollout.device ends with). ",
      status.message()));
}

}  // namespace

absl::Status AccumulateGradients(ModelTrainer& trainer, const std::vector<TrainingSequence>& sequences,
                                 const SequenceIndices& indices, const PassOptions& options,
                                 TokenGradient gradient) {
  for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
    RETURN_IF_ERROR(
        WithWayOut(RunMicroBatch(trainer, Pack(sequences, batch, options.temperature), gradient)));
  }
  return absl::OkStatus();
}

absl::Status ScoreTokens(ModelTrainer& trainer, PassWeights weights,
                         const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                         const PassOptions& options, absl::FunctionRef<void(const ScoredToken&)> visit) {
  for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
    PackedSequences packed = Pack(sequences, batch, options.temperature);
    const absl::StatusOr<RowScores> scores = trainer.Score(weights, packed.batch);
    RETURN_IF_ERROR(WithWayOut(scores.status()));
    ReadScores(*scores, packed);
    for (const ScoredToken& token : packed.answers) visit(token);
  }
  return absl::OkStatus();
}

absl::Status BroadcastWeights(ModelTrainer& trainer, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Parameters weights, trainer.HostWeights());
  for (int index = 0; index < weights.num_buffers(); ++index) {
    const at::Tensor buffer = weights.buffer(index).detach();
    RETURN_IF_ERROR(communicator.Broadcast(buffer.mutable_data_ptr(), static_cast<int64_t>(buffer.nbytes()),
                                           /*root=*/0, {"weights", "SFT"}));
  }
  return absl::OkStatus();
}

absl::Status AllReduceGradients(ModelTrainer& trainer, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();
  return trainer.VisitGradients([&](at::Tensor& gradient) {
    const ElementType type =
        gradient.scalar_type() == at::kDouble ? ElementType::kFloat64 : ElementType::kFloat32;
    return communicator.AllReduceSum(gradient.mutable_data_ptr(), gradient.numel(), type,
                                     {"gradient", "update"});
  });
}

}  // namespace warpsmith
