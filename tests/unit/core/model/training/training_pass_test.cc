#include "core/model/training/training_pass.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Writes down what it is asked for; the call `fails` gives an error.
class RecordingLayers final : public LayerCompute {
 public:
  std::vector<std::string> calls;
  std::string fails;

  int64_t num_layers() const override { return 2; }
  absl::Status Begin(const ScoredBatch&, bool keeps) override {
    return Note(keeps ? "begin, keeps" : "begin");
  }
  absl::Status Embed() override { return Note("embed"); }
  absl::Status ForwardLayer(int64_t layer) override { return Note(absl::StrCat("forward ", layer)); }
  absl::Status Score(RowScores* scores) override {
    *scores = {{-1, -2}, {0.5, 0.25}};
    return Note("score");
  }
  absl::Status BackwardHead(const std::vector<double>& gradients) override {
    return Note(absl::StrCat("backward head ", gradients[0], " ", gradients[1]));
  }
  absl::Status BackwardLayer(int64_t layer) override { return Note(absl::StrCat("backward ", layer)); }
  absl::Status BackwardEmbedding() override { return Note("backward embedding"); }

 private:
  absl::Status Note(const std::string& call) {
    calls.push_back(call);
    return call == fails ? absl::ResourceExhaustedError(call) : absl::OkStatus();
  }
};

ScoredBatch TwoTokens() {
  ScoredBatch batch{.targets = {3, -1}};
  batch.packed.Append({1, 2});
  return batch;
}

std::vector<double> Twice(const RowScores& scores) { return {2 * scores.log_probs[0], 0}; }

TEST_CASE("a pass that scores goes forward once and keeps nothing") {
  RecordingLayers layers;
  const absl::StatusOr<RowScores> scores = ScoreBatch(layers, TwoTokens());
  REQUIRE(scores.ok());
  CHECK(scores->entropies == std::vector<double>{0.5, 0.25});
  CHECK(layers.calls == std::vector<std::string>{"begin", "embed", "forward 0", "forward 1", "score"});
}

TEST_CASE("a pass with a loss goes back through the layers, with the gradient that the loss gave") {
  RecordingLayers layers;
  CHECK(AccumulateGradient(layers, TwoTokens(), Twice).ok());
  CHECK(layers.calls == std::vector<std::string>{"begin, keeps", "embed", "forward 0", "forward 1", "score",
                                                 "backward head -2 0", "backward 1", "backward 0",
                                                 "backward embedding"});
}

TEST_CASE("the first error ends a pass, and is told") {
  for (const char* const call : {"begin, keeps", "forward 1", "score", "backward 1"}) {
    INFO(call);
    RecordingLayers layers;
    layers.fails = call;
    CHECK(AccumulateGradient(layers, TwoTokens(), Twice) == absl::ResourceExhaustedError(call));
    CHECK(layers.calls.back() == call);
  }
}

TEST_CASE("a batch whose lengths do not fit together is refused, with them, and begins no pass") {
  ScoredBatch no_target = TwoTokens(), no_position = TwoTokens(), longer = TwoTokens(), cold = TwoTokens();
  no_target.targets.pop_back();
  no_position.packed.positions.pop_back();
  longer.packed.cu_seqlens.back() = 3;
  cold.temperature = 0;
  for (const ScoredBatch& batch : {no_target, no_position, longer, cold}) {
    RecordingLayers layers;
    const absl::Status status = ScoreBatch(layers, batch).status();
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::StartsWith("a batch of 2 tokens has "));
    CHECK(layers.calls.empty());
  }
}

}  // namespace
}  // namespace warpsmith
