// What happens to the requests of a PagedBatch from outside: pauses, sleep, a device that fails, new weights.
#include <memory>
#include <vector>

#include "rollout_workers/paged/paged_batch.h"
#include "tests/support/catch.h"
#include "tests/support/paged_fixture.h"

namespace warpsmith::paged {
namespace {

using Fixture = PagedFixture;
constexpr auto kSinceStart = FakePagedDevice::VersionRule::kSinceStart;

}  // namespace

TEST_CASE("a paused request gets no rows, keeps its pages, and goes on where it was") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 10, 2, 12));
  fixture.Submit(Fixture::Request(2, 10, 1, 12, 5));
  for (int i = 0; i < 3; ++i) fixture.Step();
  fixture.Plan();
  REQUIRE(fixture.batch().Pause(1).ok());
  REQUIRE(fixture.batch().Pause(1).ok());
  const int num_pages_left = fixture.num_pages_left();
  CHECK(fixture.Complete().tokens.size() == 3);  // those in flight arrive
  CHECK(fixture.Step().num_rows() == 1);
  CHECK(fixture.batch().status().num_paused == 2);
  CHECK(fixture.num_pages_left() == num_pages_left);
  REQUIRE(fixture.batch().Resume(1).ok());
  REQUIRE(fixture.batch().Resume(1).ok());
  CHECK(fixture.Step().num_decodes == 3);
  fixture.RunToEnd();
  CHECK(fixture.batch().status().num_tokens_prefilled == 20);
  CHECK(absl::IsNotFound(fixture.batch().Pause(1)));
  CHECK(absl::IsNotFound(fixture.batch().Resume(1)));
  fixture.CheckAnswers();
}

TEST_CASE("a paused request gives its pages to who needs them, and is computed again") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.num_pages = 8;
  Fixture fixture(options);
  fixture.Submit(Fixture::Request(1, 12, 1, 12));
  fixture.Step();
  fixture.Step();
  REQUIRE(fixture.batch().Pause(1).ok());
  fixture.Submit(Fixture::Request(2, 20, 1, 6, 5));
  while (fixture.finished().empty()) fixture.Step();
  CHECK(fixture.finished()[0].request_id == 2);
  CHECK(fixture.batch().status().num_preemptions == 1);
  REQUIRE(fixture.batch().Resume(1).ok());
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("an answer may end while its request is paused") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 1, 2));
  fixture.Step();
  fixture.Plan();
  REQUIRE(fixture.batch().Pause(1).ok());
  CHECK(fixture.Complete().finished.size() == 1);
  CHECK(fixture.batch().empty());
}

TEST_CASE("sleep gives all pages back, and everything goes on after it") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 10, 3, 12));
  for (int i = 0; i < 3; ++i) fixture.Step();
  fixture.Plan();
  CHECK(absl::IsFailedPrecondition(fixture.batch().Sleep()));
  fixture.Complete();
  REQUIRE(fixture.batch().Sleep().ok());
  REQUIRE(fixture.batch().Sleep().ok());
  CHECK(fixture.batch().status().num_free_pages == 199);
  CHECK(fixture.Plan().empty());
  fixture.Submit(Fixture::Request(2, 10, 1, 12));
  fixture.batch().Wake();
  CHECK_FALSE(fixture.batch().asleep());
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 4);
  fixture.CheckAnswers();
}

TEST_CASE("steps that a device failed to carry out are planned again, with the same draws") {
  const std::unique_ptr<PagedBatch> batch = *PagedBatch::Create(PagedFixtureOptions(), 1);
  REQUIRE(batch->Submit(Fixture::Request(1, 10, 2, 20)).ok());
  batch->Plan();
  batch->Complete(std::vector<TokenResult>{{.token_id = 7}, {.token_id = 8}});
  CHECK(batch->Plan().samples[0].draw == 1);
  CHECK(batch->Plan().samples[0].draw == 2);
  batch->DropSteps();
  CHECK(batch->num_steps_in_flight() == 0);
  CHECK(batch->status().num_free_pages == 199);
  REQUIRE(batch->CheckInvariants().ok());
  const StepPlan first = batch->Plan();
  CHECK(first.num_rows() == 11);
  CHECK(first.token_ids[10] == 7);
  CHECK(first.samples[0].draw == 1);
  // The other one finds the full pages of the prompt, which the first has computed.
  const StepPlan second = batch->Plan();
  CHECK(second.num_rows() == 1 + 3);
  CHECK(second.token_ids[3] == 8);
  CHECK(second.samples[1].draw == 1);
}

TEST_CASE("held requests start under the new version, those that have started end under the old one") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 12, 6));  // more samples than slots: the group has started as a whole
  fixture.Step();
  fixture.Submit(Fixture::Request(2, 5, 1, 6));
  fixture.batch().HoldNew();
  CHECK(absl::IsInvalidArgument(fixture.batch().ChangeWeights(1, EntriesOnChange::kRecompute)));
  while (!fixture.batch().drained()) {
    CHECK(absl::IsFailedPrecondition(fixture.batch().ChangeWeights(2, EntriesOnChange::kRequireNone)));
    fixture.Step();
  }
  CHECK(fixture.finished().size() == 12);
  CHECK(fixture.Plan().empty());
  REQUIRE(fixture.batch().ChangeWeights(2, EntriesOnChange::kRequireNone).ok());
  fixture.batch().AdmitNew();
  CHECK(fixture.Step().num_rows() == 5);  // nothing of the old version is found
  fixture.RunToEnd();
  for (const FinishedAnswer& answer : fixture.finished()) {
    const uint64_t version = answer.request_id == 1 ? 1 : 2;
    CHECK(answer.policy_versions == std::vector<uint64_t>(6, version));
  }
  fixture.CheckAnswers();
}

TEST_CASE("a paused request that has started is not drained") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 1, 6));
  CHECK(fixture.batch().drained());
  fixture.Step();
  REQUIRE(fixture.batch().Pause(1).ok());
  CHECK_FALSE(fixture.batch().drained());
  fixture.batch().Abort(1);
  CHECK(fixture.batch().drained());
}

TEST_CASE("running answers go on under new weights with their entries kept, each token labelled") {
  Fixture fixture(PagedFixtureOptions(), kSinceStart);
  fixture.Submit(Fixture::Request(1, 10, 2, 8));
  fixture.Step();
  fixture.Plan();  // in flight with the old weights
  REQUIRE(fixture.batch().ChangeWeights(2, EntriesOnChange::kKeep).ok());
  CHECK(fixture.Plan().policy_version == 2);
  fixture.RunToEnd();
  for (const FinishedAnswer& answer : fixture.finished()) {
    CHECK(answer.policy_versions == std::vector<uint64_t>{1, 1, 2, 2, 2, 2, 2, 2});
  }
  CHECK(fixture.batch().status().num_tokens_prefilled == 10);
  fixture.CheckAnswers();
}

TEST_CASE("pages with entries of old weights are no prefix, also those that fill up later") {
  Fixture fixture(PagedFixtureOptions(), kSinceStart);
  fixture.Submit(Fixture::Request(1, 2, 1, 12));
  fixture.Step();
  fixture.Step();
  REQUIRE(fixture.batch().ChangeWeights(2, EntriesOnChange::kKeep).ok());
  fixture.RunToEnd();
  PagedRequest next = Fixture::Request(2, 2, 1, 2);
  const std::vector<int32_t>& answer = fixture.finished()[0].token_ids;
  next.prompt_token_ids.insert(next.prompt_token_ids.end(), answer.begin(), answer.end());
  fixture.Submit(next);
  CHECK(fixture.Step().num_rows() == 14);
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("a prompt under way when entries are kept starts over and is wholly of the new version") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.prefill_tokens_max = 6;
  Fixture fixture(options);  // entries of the same version only
  fixture.Submit(Fixture::Request(1, 20, 2, 3));
  fixture.Step();
  fixture.Plan();
  REQUIRE(fixture.batch().ChangeWeights(2, EntriesOnChange::kKeep).ok());
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 2);
  CHECK(fixture.batch().status().num_tokens_prefilled == 12 + 20);
  fixture.CheckAnswers();
}

TEST_CASE("with recomputation no row sees an entry of old weights") {
  Fixture fixture;  // entries of the same version only
  fixture.Submit(Fixture::Request(1, 10, 2, 8));
  fixture.Step();
  fixture.Plan();
  REQUIRE(fixture.batch().ChangeWeights(2, EntriesOnChange::kRecompute).ok());
  CHECK(fixture.Plan().empty());  // the tokens to compute again have not been read
  CHECK(fixture.Complete().tokens.size() == 2);
  CHECK(fixture.Plan().num_rows() == 12);
  CHECK(fixture.Plan().num_rows() == 1 + 4);  // behind the prompt's full pages
  fixture.RunToEnd();
  for (const FinishedAnswer& answer : fixture.finished()) {
    CHECK(answer.policy_versions == std::vector<uint64_t>{1, 1, 2, 2, 2, 2, 2, 2});
  }
  fixture.CheckAnswers();
}

}  // namespace warpsmith::paged
