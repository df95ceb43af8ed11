#include "core/model/training/training_pass.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

absl::Status CheckBatch(const ScoredBatch& batch) {
  const PackedBatch& packed = batch.packed;
  const size_t num_tokens = packed.tokens.size();
  const bool fits = packed.positions.size() == num_tokens && batch.targets.size() == num_tokens &&
                    !packed.cu_seqlens.empty() && packed.cu_seqlens.back() == packed.num_tokens();
  if (fits && batch.temperature > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a batch of ", num_tokens, " tokens has ", packed.positions.size(), " positions, ",
      batch.targets.size(), " targets and sequences up to ",
      packed.cu_seqlens.empty() ? 0 : packed.cu_seqlens.back(), ", at a temperature of ", batch.temperature));
}

absl::Status Forward(LayerCompute& layers, const ScoredBatch& batch, bool keeps_activations,
                     RowScores* scores) {
  RETURN_IF_ERROR(CheckBatch(batch));
  RETURN_IF_ERROR(layers.Begin(batch, keeps_activations));
  RETURN_IF_ERROR(layers.Embed());
  for (int64_t layer = 0; layer < layers.num_layers(); ++layer) {
    RETURN_IF_ERROR(layers.ForwardLayer(layer));
  }
  return layers.Score(scores);
}

}  // namespace

absl::StatusOr<RowScores> ScoreBatch(LayerCompute& layers, const ScoredBatch& batch) {
  RowScores scores;
  RETURN_IF_ERROR(Forward(layers, batch, /*keeps_activations=*/false, &scores));
  return scores;
}

absl::Status AccumulateGradient(LayerCompute& layers, const ScoredBatch& batch, LossGradient loss) {
  RowScores scores;
  RETURN_IF_ERROR(Forward(layers, batch, /*keeps_activations=*/true, &scores));
  const std::vector<double> gradients = loss(scores);
  WS_CHECK(gradients.size() == batch.targets.size())
      << gradients.size() << " gradients for " << batch.targets.size() << " rows";
  RETURN_IF_ERROR(layers.BackwardHead(gradients));
  for (int64_t layer = layers.num_layers() - 1; layer >= 0; --layer) {
    RETURN_IF_ERROR(layers.BackwardLayer(layer));
  }
  return layers.BackwardEmbedding();
}

}  // namespace warpsmith
