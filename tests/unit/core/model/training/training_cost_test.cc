#include "core/model/training/training_cost.h"

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

// Qwen3-1.7B.
ModelConfig Qwen17B() {
  return {.vocab_size = 151936,
          .hidden_size = 2048,
          .intermediate_size = 6144,
          .num_hidden_layers = 28,
          .num_attention_heads = 16,
          .num_key_value_heads = 8,
          .head_dim = 128,
          .max_position_embeddings = 40960,
          .tie_word_embeddings = true};
}

}  // namespace

TEST_CASE("operations are six for each weight and token, and attention's grow with the square") {
  // 1,409,286,144 weights in the layers' matrices; 311,164,928 in the head.
  const double one = TrainingFlops(Qwen17B(), 1, 1);
  CHECK(one == Approx(6.0 * (1409286144.0 + 311164928.0 + 28 * 2048.0)).epsilon(1e-12));
  CHECK(TrainingFlops(Qwen17B(), 1, 0) == Approx(6.0 * (1409286144.0 + 28 * 2048.0)).epsilon(1e-12));
  const double attention = TrainingFlops(Qwen17B(), 4096, 0) - 4096 * TrainingFlops(Qwen17B(), 1, 0);
  CHECK(attention == Approx(6.0 * 28 * 2048 * (4096.0 * 4096.0 - 4096.0)).epsilon(1e-9));
}

TEST_CASE("the plan grows with the weights' state, the tokens, and with what waits for the backward pass") {
  const TrainingMemoryOptions options{.tokens_max = 8192, .sequence_tokens_max = 4096};
  const TrainingMemory plan = PlanTrainingMemory(Qwen17B(), options);
  CHECK(plan.state == Approx(18 * 1.7206e9).epsilon(0.001));
  TrainingMemoryOptions changed = options;
  changed.has_reference = true;
  CHECK(PlanTrainingMemory(Qwen17B(), changed).state == Approx(20 * 1.7206e9).epsilon(0.001));
  int64_t before = plan.total() + 1;
  for (const Recomputation recomputation : kRecomputations) {
    changed.recomputation = recomputation;
    const int64_t now = PlanTrainingMemory(Qwen17B(), changed).activations;
    CHECK(now < before);
    before = now;
  }
  CHECK(PlanTrainingMemory(Qwen17B(), {.tokens_max = 16384, .sequence_tokens_max = 4096}).activations >
        1.7 * plan.activations);
}

}  // namespace warpsmith
