#include "rollout_workers/paged/paged_batch.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/paged_fixture.h"

namespace warpsmith::paged {
namespace {

using Fixture = PagedFixture;

}  // namespace

TEST_CASE("options out of range are refused by name") {
  CHECK(PagedBatch::Create(PagedFixtureOptions(), 1).ok());
  const auto refused = [](auto change) {
    PagedBatchOptions options = PagedFixtureOptions();
    change(options);
    const absl::Status status = PagedBatch::Create(options, 1).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK_THAT(refused([](auto& o) { o.num_pages = 1; }), Catch::Contains("num_pages is 1"));
  CHECK_THAT(refused([](auto& o) { o.page_tokens = 0; }), Catch::Contains("page_tokens is 0"));
  CHECK_THAT(refused([](auto& o) { o.prefill_tokens_max = 0; }), Catch::Contains("prefill_tokens_max is 0"));
  CHECK_THAT(refused([](auto& o) { o.steps_in_flight_max = 0; }), Catch::Contains("steps_in_flight_max"));
  CHECK_THAT(refused([](auto& o) { o.decode_buckets = {4, 2}; }), Catch::Contains("ascending"));
  CHECK_THAT(refused([](auto& o) { o.num_pages = 1 << 30; }), Catch::Contains("int32"));
}

TEST_CASE("requests that cannot be served are refused, with the reason") {
  Fixture fixture;
  const auto refused = [&](auto change) {
    PagedRequest request = Fixture::Request(1, 5, 1, 5);
    change(request);
    const absl::Status status = fixture.batch().Submit(request);
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK_THAT(refused([](auto& r) { r.seeds.clear(); }), Catch::Contains("no seed"));
  CHECK_THAT(refused([](auto& r) { r.prompt_token_ids.clear(); }), Catch::Contains("no token"));
  CHECK_THAT(refused([](auto& r) { r.prompt_token_ids[2] = -4; }), Catch::Contains("token id -4"));
  CHECK_THAT(refused([](auto& r) { r.prompt_token_ids[2] = 1'000'000; }), Catch::Contains("0 to 999999"));
  CHECK_THAT(refused([](auto& r) { r.answer_tokens_max = 0; }), Catch::Contains("answer_tokens_max is 0"));
  CHECK_THAT(refused([](auto& r) { r.answer_tokens_max = 60; }), Catch::Contains("over the 64"));
  CHECK(fixture.batch().empty());
  fixture.Submit(Fixture::Request(1, 5, 1, 59));
  CHECK_THAT(refused([](auto&) {}), Catch::Contains("there already"));
}

TEST_CASE("a request that all pages cannot hold is refused, and one that they just hold is served") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.num_pages = 4;
  Fixture fixture(options);
  CHECK_THAT(std::string(fixture.batch().Submit(Fixture::Request(1, 10, 1, 4)).message()),
             Catch::Contains("need 4 pages of 3"));
  fixture.Submit(Fixture::Request(2, 10, 3, 3));
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 3);
  fixture.CheckAnswers();
}

TEST_CASE("more samples than samples_max are refused until some have ended") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 30, 2));
  CHECK(absl::IsResourceExhausted(fixture.batch().Submit(Fixture::Request(2, 5, 3, 2))));
  fixture.Submit(Fixture::Request(3, 5, 2, 2));
  fixture.RunToEnd();
  fixture.Submit(Fixture::Request(2, 5, 3, 2));
}

TEST_CASE("an answer ends with a stop token or at its length, with a log-prob and a version a token") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.num_token_ids = 60;  // so that the stop token is met
  Fixture fixture(options);
  for (int64_t id = 0; id < 8; ++id) fixture.Submit(Fixture::Request(id, 5, 4, 30));
  fixture.RunToEnd();
  REQUIRE(fixture.finished().size() == 32);
  int num_stopped = 0;
  for (const FinishedAnswer& answer : fixture.finished()) {
    const bool stopped = answer.token_ids.back() == 0;
    CHECK(answer.end == (stopped ? AnswerEnd::kStopToken : AnswerEnd::kLength));
    CHECK((stopped || answer.token_ids.size() == 30));
    CHECK(answer.log_probs.size() == answer.token_ids.size());
    CHECK(answer.policy_versions == std::vector<uint64_t>(answer.token_ids.size(), 1));
    CHECK(answer.seed == static_cast<uint64_t>(answer.request_id * 100 + answer.sample_index));
    num_stopped += stopped ? 1 : 0;
  }
  CHECK(num_stopped > 0);
  CHECK(num_stopped < 32);
  fixture.CheckAnswers();
}

TEST_CASE("a group's prompt is computed once, and its last page is copied for all but one") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 10, 4, 5));
  const StepPlan first = fixture.Plan();
  CHECK(first.num_rows() == 10);
  CHECK(first.logits_rows == std::vector<int32_t>{9});
  CHECK(first.num_samples == 4);
  CHECK(first.num_decodes == 0);
  CHECK(first.decode_bucket == 0);
  CHECK(fixture.num_pages_left() == 199 - 3);
  const StepPlan second = fixture.Plan();
  CHECK(second.page_copies.size() == 3);
  CHECK(second.page_copies[0].num_tokens == 2);
  CHECK(second.num_decodes == 4);
  CHECK(second.token_ids == std::vector<int32_t>(4, kTokenOnDevice));
  CHECK(second.decode_bucket == 4);
  fixture.RunToEnd();
  CHECK(fixture.batch().status().num_tokens_prefilled == 10);
  fixture.CheckAnswers();
}

TEST_CASE("samples that find no slot are admitted later and find their prompt in the pages") {
  Fixture fixture;  // eight slots
  fixture.Submit(Fixture::Request(1, 10, 20, 5));
  CHECK(fixture.Plan().num_samples == 8);
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 20);
  // Two full pages of the prompt are found; its last two tokens are computed by each later round of eight.
  CHECK(fixture.batch().status().num_tokens_prefilled == 10 + 2 * 2);
  fixture.CheckAnswers();
}

TEST_CASE("another group that begins alike computes only the rest") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 21, 2, 3));
  fixture.Step();
  fixture.Submit(Fixture::Request(2, 24, 2, 3));
  CHECK(fixture.Plan().num_rows() == 2 + 4);
  fixture.RunToEnd();
  fixture.Submit(Fixture::Request(3, 24, 1, 3));  // from pages that nobody refers to
  CHECK(fixture.Step().num_rows() == 4);
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("an answer's pages are a prefix for the turn that continues it") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 6, 1, 12));
  fixture.RunToEnd();
  PagedRequest next = Fixture::Request(2, 6, 1, 3);
  const std::vector<int32_t>& answer = fixture.finished()[0].token_ids;
  next.prompt_token_ids.insert(next.prompt_token_ids.end(), answer.begin(), answer.end());
  fixture.Submit(next);
  CHECK(fixture.Step().num_rows() == 2);  // of 18, 16 are in full pages
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("a sequence that turns out to have stopped costs one row, whose result is dropped") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 2, 20));
  fixture.Plan();
  CHECK(fixture.Plan().num_decodes == 2);
  const StepOutcome outcome =
      fixture.Complete([](std::vector<TokenResult>& results) { results[0].token_id = 0; });
  REQUIRE(outcome.finished.size() == 1);
  CHECK(outcome.finished[0].token_ids == std::vector<int32_t>{0});
  CHECK(outcome.finished[0].end == AnswerEnd::kStopToken);
  CHECK(fixture.Plan().num_decodes == 1);
  CHECK(fixture.Complete().tokens.size() == 1);
  CHECK(fixture.batch().status().num_tokens_dropped == 1);
}

TEST_CASE("a length limit is known before the tokens are, so it costs no row") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 3, 1));
  CHECK(fixture.Plan().num_samples == 3);
  CHECK(fixture.Plan().empty());
  CHECK(fixture.Complete().finished.size() == 3);
  CHECK(fixture.batch().status().num_tokens_dropped == 0);
  CHECK(fixture.num_pages_left() == 199);
}

TEST_CASE("no more steps are in flight than allowed") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 1, 20));
  CHECK_FALSE(fixture.Plan().empty());
  CHECK_FALSE(fixture.Plan().empty());
  CHECK(fixture.Plan().empty());
  fixture.Complete();
  CHECK(fixture.Plan().step == 2);
}

TEST_CASE("a long prompt is computed in chunks, beside which everybody decodes") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.prefill_tokens_max = 6;
  Fixture fixture(options);
  fixture.Submit(Fixture::Request(1, 5, 3, 40));
  fixture.Step();
  fixture.Submit(Fixture::Request(2, 50, 2, 5, 1));
  for (int chunk = 0; chunk < 9; ++chunk) {
    const StepPlan plan = fixture.Step();
    CHECK(plan.num_decodes == 3);
    CHECK(plan.num_rows() == 3 + (chunk < 8 ? 6 : 2));
    CHECK(plan.num_samples == 3 + (chunk < 8 ? 0 : 2));
    CHECK(plan.decode_bucket == 0);
  }
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("preempted sequences are computed again, and sample the same") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.num_pages = 12;
  Fixture fixture(options);
  for (int64_t id = 0; id < 5; ++id) fixture.Submit(Fixture::Request(id, 6, 1, 25, static_cast<int>(id)));
  fixture.RunToEnd();
  CHECK(fixture.batch().status().num_preemptions > 0);
  CHECK(fixture.finished().size() == 5);
  CHECK(fixture.finished()[0].request_id == 0);  // the oldest is never preempted
  fixture.CheckAnswers();
}

TEST_CASE("an old long request ends in bounded time beside a stream of new ones") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.num_pages = 20;
  options.sequences_max = 3;
  Fixture fixture(options);
  int64_t id = 0;
  for (; id < 6; ++id) fixture.Submit(Fixture::Request(id, 8, 1, 4, static_cast<int>(id)));
  fixture.Submit(Fixture::Request(1000, 40, 1, 20, 900));
  int num_steps = 0;
  for (bool ended = false; !ended; ++num_steps) {
    REQUIRE(num_steps < 100);
    while (fixture.batch().status().num_waiting < 10) {
      fixture.Submit(Fixture::Request(id, 8, 1, 4, static_cast<int>(id)));
      ++id;
    }
    fixture.Step();
    ended = std::any_of(fixture.finished().begin(), fixture.finished().end(),
                        [](const auto& answer) { return answer.request_id == 1000; });
  }
  CHECK(num_steps < 60);
}

TEST_CASE("an aborted request leaves nothing, and its id can be used again at once") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 10, 3, 20));
  fixture.Plan();
  fixture.Plan();
  fixture.batch().Abort(1);
  fixture.batch().Abort(77);
  CHECK(fixture.batch().empty());
  CHECK(fixture.num_pages_left() == 199);
  CHECK(fixture.Complete().tokens.empty());
  PagedRequest again = Fixture::Request(1, 10, 2, 4);
  again.seeds = {901, 902};
  fixture.Submit(again);
  CHECK(fixture.Plan().num_samples == 2);
  CHECK(fixture.Complete().tokens.empty());  // of the second step of the first
  CHECK(fixture.Complete().tokens.size() == 2);
  fixture.RunToEnd();
  fixture.CheckAnswers();
}

TEST_CASE("finishing early keeps the tokens asked for and drops those in flight") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 2, 20));
  for (int i = 0; i < 4; ++i) fixture.Step();
  fixture.Plan();
  CHECK(absl::IsInvalidArgument(fixture.batch().FinishEarly(1, 0, 5).status()));
  CHECK(absl::IsNotFound(fixture.batch().FinishEarly(1, 2, 0).status()));
  CHECK(absl::IsNotFound(fixture.batch().FinishEarly(3, 0, 0).status()));
  const absl::StatusOr<FinishedAnswer> answer = fixture.batch().FinishEarly(1, 0, 3);
  REQUIRE(answer.ok());
  CHECK(answer->token_ids.size() == 3);
  CHECK(answer->log_probs.size() == 3);
  CHECK(answer->end == AnswerEnd::kFinishedEarly);
  CHECK(absl::IsNotFound(fixture.batch().FinishEarly(1, 0, 3).status()));
  CHECK(fixture.Complete().tokens.size() == 1);
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 1);
}

TEST_CASE("when the sample that computes the prompt ends, a sibling goes on with it") {
  PagedBatchOptions options = PagedFixtureOptions();
  options.prefill_tokens_max = 6;
  Fixture fixture(options);
  fixture.Submit(Fixture::Request(1, 20, 3, 4));
  fixture.Step();
  REQUIRE(fixture.batch().FinishEarly(1, 0, 0).ok());
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 2);
  CHECK(fixture.batch().status().num_tokens_prefilled == 20);
  fixture.CheckAnswers();
}

TEST_CASE("logits that are no numbers end the request, and nobody else's") {
  Fixture fixture;
  fixture.Submit(Fixture::Request(1, 5, 3, 9));
  fixture.Submit(Fixture::Request(2, 5, 1, 9, 4));
  fixture.Plan();
  const StepOutcome outcome =
      fixture.Complete([](std::vector<TokenResult>& results) { results[1].token_id = kNoToken; });
  CHECK(outcome.broken_request_ids == std::vector<int64_t>{1});
  fixture.RunToEnd();
  CHECK(fixture.finished().size() == 1);
  CHECK(fixture.finished()[0].request_id == 2);
  CHECK(fixture.num_pages_left() == 199);
}

TEST_CASE("a batch with pages for little more than one sequence serves many, colliding hashes or not") {
  for (const BlockHash hash :
       {BlockHash{HashBlock}, BlockHash{[](const PrefixBlock&) { return uint64_t{3}; }}}) {
    PagedBatchOptions options = PagedFixtureOptions();
    options.num_pages = 8;
    options.steps_in_flight_max = 3;
    options.block_hash = hash;
    Fixture fixture(options);
    for (int64_t id = 0; id < 8; ++id)
      fixture.Submit(Fixture::Request(id, 9, 3, 18, static_cast<int>(id % 2)));
    fixture.RunToEnd();
    CHECK(fixture.finished().size() == 24);
    fixture.CheckAnswers();
  }
}

}  // namespace warpsmith::paged
