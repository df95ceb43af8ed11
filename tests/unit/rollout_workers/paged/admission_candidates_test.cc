#include "rollout_workers/paged/admission_candidates.h"

#include <numeric>

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

struct Waiting {
  SequenceTable table{6};
  PagePool pool{40, 4, 1};

  void Add(int64_t id, int num_prompt_tokens, int num_samples, int first_token = 1) {
    PagedRequest request{.id = id, .answer_tokens_max = 50};
    request.prompt_token_ids.resize(num_prompt_tokens);
    std::iota(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), first_token);
    for (int i = 0; i < num_samples; ++i) request.seeds.push_back(i);
    table.Add(std::move(request));
  }
  PagedSequence* Sample(int64_t id, int index) { return table.Find(id)->samples[index].get(); }
  void Compute(PagedSequence* sequence, int num_tokens) {
    std::vector<PageCopy> copies;
    ExtendPages(num_tokens, pool, *sequence, copies);
    PublishFullPages(pool, *sequence);
  }
  // With all but its last token computed.
  void MakeReturning(PagedSequence* sequence) {
    sequence->answer = {900};
    sequence->log_probs = {0};
    sequence->policy_versions = {1};
    table.Move(sequence, sequence->state);
  }
  std::vector<AdmissionCandidate> Collect(int prefill_tokens_max = 100,
                                          NewRequests new_requests = NewRequests::kStart) {
    return CollectCandidates(table, pool, prefill_tokens_max, new_requests);
  }
};

}  // namespace

TEST_CASE("the samples of a group are one candidate, as far as there are slots") {
  Waiting waiting;
  CHECK(waiting.Collect().empty());
  waiting.Add(1, 9, 4);
  waiting.Add(2, 5, 4, 100);
  const std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].samples.size() == 4);
  CHECK(candidates[0].snapshot.num_samples == 4);
  CHECK(candidates[0].snapshot.num_wanted == 9);
  CHECK(candidates[0].snapshot.num_pages == 3);
  CHECK(candidates[1].snapshot.num_samples == 2);
}

TEST_CASE("a candidate takes cached pages from the available ones, and referenced ones from nobody") {
  Waiting waiting;
  waiting.Add(1, 13, 1);
  waiting.Add(2, 13, 1);
  PagedSequence* const first = waiting.Sample(1, 0);
  waiting.table.Move(first, SequenceState::kRunning);
  waiting.Compute(first, 13);
  std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].prefix_pages.size() == 3);
  CHECK(candidates[0].snapshot.num_wanted == 1);
  CHECK(candidates[0].snapshot.num_pages == 1);
  ReleasePages(waiting.pool, *first);
  candidates = waiting.Collect();
  CHECK(candidates[0].snapshot.num_pages == 4);
}

TEST_CASE("who has a token comes before who has none, and who has pages wants the rest") {
  Waiting waiting;
  waiting.Add(1, 5, 1);
  waiting.Add(2, 6, 1, 100);
  PagedSequence* const returning = waiting.Sample(2, 0);
  waiting.Compute(returning, 6);
  waiting.MakeReturning(returning);
  const std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].samples[0] == returning);
  CHECK(candidates[0].snapshot.num_wanted == 1);
  CHECK(candidates[0].snapshot.num_pages == 0);
}

TEST_CASE("who continues in a page that a sibling refers to takes a page for the copy") {
  Waiting waiting;
  waiting.Add(1, 6, 2);
  PagedSequence* const first = waiting.Sample(1, 0);
  waiting.Compute(first, 6);
  SharePages(*first, waiting.pool, *waiting.Sample(1, 1));
  for (const int i : {0, 1}) waiting.MakeReturning(waiting.Sample(1, i));
  const std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].snapshot.num_pages == 1);
}

TEST_CASE("nobody is looked at behind a sequence whose tokens are in flight") {
  Waiting waiting;
  waiting.Add(1, 5, 1);
  waiting.Add(2, 5, 1, 100);
  waiting.Sample(1, 0)->num_in_flight = 1;
  waiting.table.Move(waiting.Sample(1, 0), SequenceState::kWaiting);
  CHECK(waiting.Collect().empty());
}

TEST_CASE("the list ends where the budget or the pages do") {
  Waiting waiting;
  for (int64_t id = 1; id <= 3; ++id) waiting.Add(id, 20, 1, static_cast<int>(100 * id));
  CHECK(waiting.Collect(100).size() == 3);
  CHECK(waiting.Collect(20).size() == 2);  // the second has a share of the next step
  CHECK(waiting.Collect(19).size() == 1);
  for (int i = 0; i < 36; ++i) waiting.pool.Allocate();
  CHECK(waiting.Collect(100).size() == 1);
}

TEST_CASE("a sample whose sibling computes the prompt joins it") {
  Waiting waiting;
  waiting.Add(1, 20, 3);
  PagedSequence* const leader = waiting.Sample(1, 0);
  waiting.table.Move(leader, SequenceState::kRunning);
  waiting.Compute(leader, 8);
  const std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].leader == leader);
  CHECK(candidates[0].samples.size() == 2);
  CHECK(candidates[0].snapshot.joins_sibling);
  CHECK(candidates[0].snapshot.num_pages == 0);
}

TEST_CASE("of groups that begin alike one computes the beginning, and the others wait a step for it") {
  Waiting waiting;
  waiting.Add(1, 20, 1);
  waiting.Add(2, 24, 2);
  waiting.Add(3, 20, 1, 100);
  std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[1].samples[0] == waiting.Sample(3, 0));
  waiting.table.Move(waiting.Sample(1, 0), SequenceState::kRunning);
  waiting.Compute(waiting.Sample(1, 0), 20);
  candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].samples.size() == 2);
  CHECK(candidates[0].prefix_pages.size() == 5);
}

TEST_CASE("samples of a group that all start over share its prompt again") {
  Waiting waiting;
  waiting.Add(1, 20, 3);
  for (const int i : {0, 1, 2}) waiting.MakeReturning(waiting.Sample(1, i));
  CHECK(waiting.Collect().size() == 1);
  waiting.table.Move(waiting.Sample(1, 0), SequenceState::kRunning);
  waiting.Compute(waiting.Sample(1, 0), 20);
  const std::vector<AdmissionCandidate> candidates = waiting.Collect();
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[1].snapshot.num_wanted == 1);
}

TEST_CASE("a call searches for a bounded number of prefixes") {
  Waiting waiting;
  waiting.table = SequenceTable(100);
  for (int64_t id = 0; id < 60; ++id) waiting.Add(id, 1, 1, static_cast<int>(id));
  CHECK(std::ssize(waiting.Collect()) == kPrefixSearchesMax);
}

TEST_CASE("prompts that share less than a page do not wait for each other") {
  Waiting waiting;
  waiting.Add(1, 4, 1);
  waiting.Add(2, 4, 1);  // its only page is computed again, because the last row is wanted
  CHECK(waiting.Collect().size() == 2);
}

TEST_CASE("held requests are left out, those that have started are not") {
  Waiting waiting;
  waiting.Add(1, 5, 1);
  waiting.Add(2, 5, 1, 100);
  waiting.table.Find(2)->started = true;
  const std::vector<AdmissionCandidate> candidates = waiting.Collect(100, NewRequests::kHold);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].samples[0] == waiting.Sample(2, 0));
}

}  // namespace warpsmith::paged
