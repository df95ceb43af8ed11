#include "rollout_workers/paged/step_scheduler.h"

#include <map>
#include <utility>

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

constexpr int kPageTokens = 4;

// A snapshot by hand: pages are counted as they are named.
struct Situation {
  std::vector<std::vector<int32_t>> running_pages, holder_pages;
  std::vector<RunningSnapshot> running;
  std::vector<CandidateSnapshot> candidates;
  int num_available_pages = 0;
  int num_free_slots = 8;

  Situation& Decoding(int num_computed, std::vector<int32_t> pages) {
    running.push_back({.num_computed = num_computed, .num_wanted = 1, .is_decoding = true});
    running_pages.push_back(std::move(pages));
    return *this;
  }
  Situation& Prefilling(int num_computed, int num_wanted, std::vector<int32_t> pages) {
    running.push_back({.num_computed = num_computed, .num_wanted = num_wanted});
    running_pages.push_back(std::move(pages));
    return *this;
  }
  Situation& Holding(std::vector<int32_t> pages) {
    holder_pages.push_back(std::move(pages));
    return *this;
  }
  Situation& Waiting(CandidateSnapshot candidate) {
    candidates.push_back(candidate);
    return *this;
  }

  StepDecision Decide(int prefill_tokens_max = 16) {
    std::vector<int32_t> ref_counts(100);
    std::vector<absl::Span<const int32_t>> holders(holder_pages.begin(), holder_pages.end());
    for (size_t i = 0; i < running.size(); ++i) running[i].pages = running_pages[i];
    for (const auto& all : {running_pages, holder_pages}) {
      for (const auto& pages : all) {
        for (const int32_t page : pages) ++ref_counts[page];
      }
    }
    return StepScheduler(prefill_tokens_max, kPageTokens)
        .Decide({.running = running,
                 .holders = holders,
                 .candidates = candidates,
                 .ref_counts = ref_counts,
                 .num_available_pages = num_available_pages,
                 .num_free_slots = num_free_slots});
  }
};

// Index and tokens of each that works.
std::vector<std::pair<int, int>> WorkOf(const StepDecision& decision) {
  std::vector<std::pair<int, int>> work;
  for (const auto& [running, num_tokens] : decision.work) work.emplace_back(running, num_tokens);
  return work;
}

using Pairs = std::vector<std::pair<int, int>>;

}  // namespace

TEST_CASE("nothing to do gives an empty decision") {
  const StepDecision decision = Situation().Decide();
  CHECK(decision.work.empty());
  CHECK(decision.admissions.empty());
}

TEST_CASE("every decode gets its row beside a long prompt, which gets a chunk") {
  Situation situation;
  situation.num_available_pages = 50;
  situation.Prefilling(0, 100, {}).Decoding(5, {1, 2}).Decoding(6, {3, 4});
  CHECK(WorkOf(situation.Decide(16)) == Pairs{{0, 16}, {1, 1}, {2, 1}});
}

TEST_CASE("prompts share the budget, oldest first") {
  Situation situation;
  situation.num_available_pages = 50;
  situation.Prefilling(0, 10, {}).Prefilling(0, 10, {}).Prefilling(0, 10, {});
  CHECK(WorkOf(situation.Decide(16)) == Pairs{{0, 10}, {1, 6}});
}

TEST_CASE("who waits for tokens in flight gets no row and keeps its pages") {
  Situation situation;
  situation.num_available_pages = 1;
  situation.Decoding(5, {1, 2}).Decoding(4, {3});
  situation.running[0].num_wanted = 0;
  const StepDecision decision = situation.Decide();
  CHECK(WorkOf(decision) == Pairs{{1, 1}});
  CHECK(decision.preempted_running.empty());
}

TEST_CASE("out of pages, the youngest gives its pages to the oldest") {
  Situation situation;
  situation.Decoding(4, {1}).Decoding(3, {2}).Decoding(3, {3});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running == std::vector<int>{2});
  CHECK(WorkOf(decision) == Pairs{{0, 1}, {1, 1}});
}

TEST_CASE("sequences without a slot give pages back before running ones, the youngest first") {
  Situation situation;
  situation.Decoding(4, {1}).Decoding(3, {2}).Holding({3}).Holding({4});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_holders == std::vector<int>{1});
  CHECK(decision.preempted_running.empty());
  CHECK(WorkOf(decision) == Pairs{{0, 1}, {1, 1}});
}

TEST_CASE("pages that others refer to are not gained by preempting") {
  Situation situation;
  // Both younger ones refer to page 2 and have a page of their own.
  situation.Decoding(8, {1, 9}).Decoding(3, {2}).Decoding(4, {2});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running == std::vector<int>{2, 1});
  CHECK(WorkOf(decision) == Pairs{{0, 1}});
}

TEST_CASE("the youngest waits with its pages when nobody is younger") {
  Situation situation;
  situation.Decoding(3, {1}).Decoding(4, {2});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running.empty());
  CHECK(WorkOf(decision) == Pairs{{0, 1}});
}

TEST_CASE("a copy of a shared page is counted for every writer but the last") {
  Situation situation;
  situation.num_available_pages = 1;
  situation.Decoding(2, {1}).Decoding(2, {1});
  CHECK(WorkOf(situation.Decide()) == Pairs{{0, 1}, {1, 1}});
  situation.num_available_pages = 0;
  // The oldest takes the page of the younger one, which makes the page its own.
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running == std::vector<int>{1});
  CHECK(WorkOf(decision) == Pairs{{0, 1}});
  // Where a paused sibling holds the page too, both writers need a copy.
  situation.num_available_pages = 2;
  situation.Holding({1});
  CHECK(situation.Decide().preempted_holders.empty());
  situation.num_available_pages = 1;
  CHECK(situation.Decide().preempted_holders == std::vector<int>{0});
}

TEST_CASE("a chunk shrinks to the pages that are left") {
  Situation situation;
  situation.num_available_pages = 2;
  situation.Prefilling(6, 16, {1, 2});
  CHECK(WorkOf(situation.Decide()) == Pairs{{0, 10}});
  situation.num_available_pages = 0;
  CHECK(WorkOf(situation.Decide()) == Pairs{{0, 2}});
  situation = Situation();
  situation.Prefilling(8, 16, {1, 2});
  CHECK(WorkOf(situation.Decide()).empty());
}

TEST_CASE("a follower without pages is no victim") {
  Situation situation;
  situation.Decoding(4, {1}).Prefilling(4, 4, {2}).Prefilling(0, 0, {});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running == std::vector<int>{1});
}

TEST_CASE("a group is admitted with its samples and its first chunk") {
  Situation situation;
  situation.num_available_pages = 50;
  situation.Waiting({.num_samples = 4, .num_wanted = 40, .num_pages = 10});
  const StepDecision decision = situation.Decide(16);
  REQUIRE(decision.admissions.size() == 1);
  CHECK(decision.admissions[0].num_samples == 4);
  CHECK(decision.admissions[0].num_tokens == 16);
}

TEST_CASE("as many samples are admitted as slots and pages allow") {
  Situation situation;
  situation.num_available_pages = 50;
  situation.num_free_slots = 3;
  situation.Waiting({.num_samples = 8, .num_wanted = 4, .num_pages = 1});
  CHECK(situation.Decide().admissions[0].num_samples == 3);
  situation.num_free_slots = 8;
  situation.num_available_pages = 6;
  CHECK(situation.Decide().admissions[0].num_samples == 5);
}

TEST_CASE("nobody is overtaken: who does not fit ends the round") {
  Situation situation;
  situation.num_available_pages = 10;
  situation.Decoding(5, {1, 2});
  situation.Waiting({.num_wanted = 60, .num_pages = 15}).Waiting({.num_wanted = 1, .num_pages = 1});
  CHECK(situation.Decide().admissions.empty());
}

TEST_CASE("an admission leaves a page for every running sequence") {
  Situation situation;
  situation.num_available_pages = 5;
  situation.Decoding(5, {1, 2}).Decoding(5, {3, 4});
  situation.Waiting({.num_wanted = 8, .num_pages = 2});
  CHECK(situation.Decide().admissions.size() == 1);
  situation.num_available_pages = 4;
  CHECK(situation.Decide().admissions.empty());
}

TEST_CASE("nothing is admitted while a prompt that runs wants more of the budget") {
  Situation situation;
  situation.num_available_pages = 50;
  situation.Prefilling(0, 17, {}).Waiting({.num_wanted = 4, .num_pages = 1});
  CHECK(situation.Decide(16).admissions.empty());
  CHECK(situation.Decide(17).admissions.empty());
  CHECK(situation.Decide(18).admissions[0].num_tokens == 1);
}

TEST_CASE("a step that preempts admits nobody") {
  Situation situation;
  situation.Decoding(4, {1}).Decoding(8, {2, 3}).Waiting({.num_wanted = 1, .num_pages = 1});
  const StepDecision decision = situation.Decide();
  CHECK(decision.preempted_running.size() == 1);
  CHECK(decision.admissions.empty());
}

TEST_CASE("a sample that joins its sibling takes no budget and no page") {
  Situation situation;
  situation.num_available_pages = 40;
  situation.Prefilling(0, 100, {});
  situation.Waiting({.num_samples = 2, .num_wanted = 100, .joins_sibling = true});
  const StepDecision decision = situation.Decide(16);
  REQUIRE(decision.admissions.size() == 1);
  CHECK(decision.admissions[0].num_samples == 2);
  CHECK(decision.admissions[0].num_tokens == 0);
}

TEST_CASE("when nothing runs, fitting is enough, and holders make room") {
  Situation situation;
  situation.num_available_pages = 2;
  situation.Waiting({.num_samples = 4, .num_wanted = 8, .num_pages = 2});
  REQUIRE(situation.Decide().admissions.size() == 1);
  CHECK(situation.Decide().admissions[0].num_samples == 1);

  situation.num_available_pages = 0;
  situation.Holding({1}).Holding({2}).Holding({3});
  const StepDecision decision = situation.Decide();
  CHECK(decision.admissions.empty());
  CHECK(decision.preempted_holders == std::vector<int>{2, 1});
}

TEST_CASE("a candidate does not take its own pages") {
  Situation situation;
  situation.Holding({1}).Holding({2});
  situation.Waiting({.num_wanted = 4, .num_pages = 1, .holder = 1});
  CHECK(situation.Decide().preempted_holders == std::vector<int>{0});
}

TEST_CASE("a decision is a function of its snapshot, whatever was decided before") {
  StepScheduler scheduler(16, kPageTokens);
  const std::vector<int32_t> a = {1}, b = {2}, ref_counts = {0, 1, 1};
  const std::vector<RunningSnapshot> running = {
      {.num_computed = 4, .num_wanted = 1, .is_decoding = true, .pages = a},
      {.num_computed = 4, .num_wanted = 1, .is_decoding = true, .pages = b}};
  const StepSnapshot snapshot = {.running = running, .ref_counts = ref_counts};
  for (int i = 0; i < 3; ++i) {
    const StepDecision decision = scheduler.Decide(snapshot);
    CHECK(decision.preempted_running == std::vector<int>{1});
    CHECK(WorkOf(decision) == Pairs{{0, 1}});
  }
}

}  // namespace warpsmith::paged
