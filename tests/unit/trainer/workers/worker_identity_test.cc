#include "trainer/workers/worker_identity.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const WorkerIdentity kTrainer = {.layout_sha256 = "layout",
                                 .prompts_sha256 = "prompts",
                                 .model_fields = {{"rms_norm_eps", "1e-06"}, {"rope_theta", "10000.0"}},
                                 .stop_token_ids = {2, 0}};

// The refusal of a worker that `change` makes another; empty: none.
template <typename Change>
std::string Refusal(const Change& change) {
  WorkerIdentity worker = kTrainer;
  worker.address = "host:1";
  change(worker);
  const absl::Status status = CheckAgrees(worker, kTrainer);
  CHECK((status.ok() || absl::IsFailedPrecondition(status)));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("a worker that computes other logits is refused by its address, the field and both values") {
  CHECK(Refusal([](auto& worker) { worker.model_fields["rope_theta"] = "5000.0"; }) ==
        "rollout worker host:1: its model is not the trainer's: rope_theta is 5000.0, not 10000.0; start it "
        "with the trainer's configuration");
  CHECK_THAT(Refusal([](auto& worker) { worker.model_fields["rms_norm_eps"] = "1e-05"; }),
             Catch::Contains("rms_norm_eps is 1e-05, not 1e-06"));
}

TEST_CASE("a worker with another shape, other prompts or other ends of answers is refused") {
  CHECK_THAT(Refusal([](auto& worker) { worker.layout_sha256 = "other"; }),
             Catch::Contains("another model shape"));
  CHECK_THAT(Refusal([](auto& worker) { worker.prompts_sha256 = "other"; }),
             Catch::Contains("other prompts"));
  CHECK_THAT(Refusal([](auto& worker) { worker.stop_token_ids = {0}; }),
             Catch::Contains("its answers end with the tokens 0, the trainer's with 0, 2 (eos_token_id"));
}

TEST_CASE("a worker that agrees is taken, also one that tells less because it is older") {
  CHECK(Refusal([](auto&) {}).empty());
  CHECK(Refusal([](auto& worker) { worker.stop_token_ids = {0, 2}; }).empty());
  CHECK(Refusal([](auto& worker) {
          worker.model_fields.clear();
          worker.stop_token_ids.clear();
        }).empty());
}

}  // namespace warpsmith
