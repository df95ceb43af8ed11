#include "trainer/device_section.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/unit/trainer/written_configuration.h"

namespace warpsmith {
namespace {

// A model that a GPU trains, but for what `model` says.
absl::StatusOr<Configuration> With(const std::string& trainer, const std::string& head_dim = "64") {
  return ReadWritten(
      "model: {vocab_size: 96, hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1, "
      "num_attention_heads: 1, num_key_value_heads: 1, head_dim: " +
      head_dim + "}\n" + kSmallestData + "trainer: {" + trainer + "}\n");
}

}  // namespace

TEST_CASE("the update is computed on the CPU, or on one GPU by one process") {
  CHECK(With("").value().trainer.gpu == std::nullopt);
  CHECK(With("device: cpu").value().trainer.gpu == std::nullopt);
  CHECK(With("device: cuda").value().trainer.gpu == 0);
  CHECK(With("device: \"cuda:3\"").value().trainer.gpu == 3);
  for (const char* const wrong : {"gpu", "cuda:", "cuda:x", "cuda:64", "cuda:-1", "cuda:0,1"}) {
    INFO(wrong);
    CHECK(Says(With(std::string("device: \"") + wrong + "\"").status(), "give cpu, cuda or cuda:N"));
  }
  CHECK(Says(With("device: cuda, num_processes: 2").status(), "trainer.num_processes: is 2"));
}

TEST_CASE("what a GPU does not train is refused with the values") {
  CHECK(With("", "16").ok());
  CHECK(Says(With("device: cuda", "16").status(), "trainer.device: is a GPU, and the model has head_dim 16"));
  CHECK(Says(With("device: cuda, cold_start: {matrix_update: muon}").status(),
             "trainer.device: is a GPU, which updates by AdamW alone"));
}

TEST_CASE("recomputation is named by what is computed again") {
  for (const Recomputation one : kRecomputations) {
    const auto read = With("recomputation: " + std::string(NameOf(one)) + ", deterministic: false");
    REQUIRE(read.ok());
    CHECK(read->trainer.recomputation == one);
    CHECK_FALSE(read->trainer.deterministic);
  }
  CHECK(With("").value().trainer.recomputation == Recomputation::kNone);
  CHECK(With("").value().trainer.deterministic);
  CHECK(Says(With("recomputation: all").status(), "trainer.recomputation"));
}

}  // namespace warpsmith
