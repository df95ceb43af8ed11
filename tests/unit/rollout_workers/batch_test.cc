#include "rollout_workers/batch.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {

TEST_CASE("a batch on the CPU wants its weights in memory") {
  const std::unique_ptr<Batch> batch = MakeBatch(Tiny(), {.num_slots = 2, .context_tokens_max = 64}).value();
  CHECK(batch->empty());
  CHECK(absl::IsInvalidArgument(
      batch->SetWeights(HuggingFaceDirectory("a/checkpoint"), paged::EntriesOnChange::kRequireNone)));
  CHECK(batch->SetWeights(RandomWeights(Tiny(), 1), paged::EntriesOnChange::kRequireNone).ok());
}

TEST_CASE("a batch on the CPU decodes nothing after weights that it could not take, until it has others") {
  const std::unique_ptr<Batch> batch = MakeBatch(Tiny(), {.num_slots = 2, .context_tokens_max = 64}).value();
  CHECK_FALSE(batch->can_step());
  REQUIRE(batch->SetWeights(RandomWeights(Tiny(), 1), paged::EntriesOnChange::kRequireNone).ok());
  CHECK(batch->can_step());
  ModelConfig other = Tiny();
  other.num_hidden_layers = 1;
  REQUIRE_FALSE(batch->SetWeights(RandomWeights(other, 1), paged::EntriesOnChange::kRequireNone).ok());
  CHECK_FALSE(batch->can_step());
  batch->Add(Job(7, {Group(0, 3, 5), Group(1, 1, 5)}));
  const Batch::Outcome given_up = batch->GiveUp(absl::AbortedError("held too long"));
  REQUIRE(given_up.failed.size() == 1);
  CHECK(given_up.failed[0].job_id == 7);
  CHECK(absl::IsAborted(given_up.failed[0].status));
  CHECK(batch->empty());
  REQUIRE(batch->SetWeights(RandomWeights(Tiny(), 2), paged::EntriesOnChange::kRequireNone).ok());
  CHECK(batch->can_step());
}

TEST_CASE("a GPU that cannot be had is an error that says why, and no crash") {
  EngineOptions options{.num_slots = 2, .context_tokens_max = 64};
  options.cuda = CudaPlacement{.devices = {63}};
  ModelConfig config = Tiny();
  config.head_dim = 64;  // which there are kernels for
  const absl::Status status = MakeBatch(config, options).status();
  CHECK_FALSE(status.ok());
  CHECK_FALSE(Engine::Create(config, options, {}).ok());
  if (absl::IsUnimplemented(status)) {  // this build has no CUDA
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("cuda:63") && Catch::Contains("./dev build cuda"));
  }
}

}  // namespace warpsmith
