#include "rollout_workers/paged/prompt_sharing.h"

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

// Three samples run, and the first has computed five tokens of their prompt.
struct Group {
  SequenceTable table{4};
  PagePool pool{10, 4, 1};
  PagedSequence *leader = nullptr, *second = nullptr, *third = nullptr;

  Group() {
    table.Add({.id = 9, .prompt_token_ids = {1, 2, 3, 4, 5, 6}, .seeds = {1, 2, 3}, .answer_tokens_max = 5});
    RequestEntry& entry = *table.Find(9);
    leader = entry.samples[0].get();
    second = entry.samples[1].get();
    third = entry.samples[2].get();
    for (PagedSequence* const sequence : {leader, second, third}) {
      table.Move(sequence, SequenceState::kRunning);
    }
    second->leader = third->leader = leader;
    std::vector<PageCopy> copies;
    ExtendPages(5, pool, *leader, copies);
  }
};

}  // namespace

TEST_CASE("the leader of a group is the running sample that computes the prompt") {
  Group group;
  CHECK(FindLeader(*group.table.Find(9)) == group.leader);
  CHECK(FollowersOf(*group.leader, group.table) == std::vector<PagedSequence*>{group.second, group.third});
  CHECK(FollowersOf(*group.second, group.table).empty());
  group.leader->num_in_flight = 1;  // the prompt is done
  group.second->leader = group.third->leader = nullptr;
  group.second->num_in_flight = group.third->num_in_flight = 1;
  CHECK(FindLeader(*group.table.Find(9)) == nullptr);
}

TEST_CASE("when the leader ends, its first follower goes on where it was") {
  Group group;
  const std::vector<int32_t> pages = group.leader->pages;
  PublishFullPages(group.pool, *group.leader);
  HandOverPrompt(*group.leader, group.table);
  CHECK(group.leader->pages.empty());
  CHECK(group.second->pages == pages);
  CHECK(group.second->num_computed == 5);
  CHECK(group.second->num_published == 1);
  CHECK(group.second->leader == nullptr);
  CHECK(group.third->leader == group.second);
  ReleasePages(group.pool, *group.leader);
  CHECK(group.pool.ref_counts()[pages[0]] == 1);
  HandOverPrompt(*group.third, group.table);  // nobody follows it
  CHECK(group.second->pages == pages);
}

TEST_CASE("a preempted leader waits without pages, and its followers wait too") {
  Group group;
  Preempt(*group.leader, group.table, group.pool);
  CHECK(group.table.running().empty());
  CHECK(group.table.fresh().size() == 3);
  CHECK(group.leader->num_computed == 0);
  CHECK(group.second->leader == nullptr);
  CHECK(group.pool.num_available() == 9);
}

TEST_CASE("a paused sequence that is preempted stays paused") {
  Group group;
  for (PagedSequence* const sequence : {group.second, group.third}) {
    sequence->leader = nullptr;
    group.table.Move(sequence, SequenceState::kPaused);
  }
  group.table.Move(group.leader, SequenceState::kPaused);
  CHECK(group.table.holders().size() == 1);
  Preempt(*group.leader, group.table, group.pool);
  CHECK(group.leader->state == SequenceState::kPaused);
  CHECK(group.table.holders().empty());
  CHECK(group.table.fresh().empty());
}

}  // namespace warpsmith::paged
