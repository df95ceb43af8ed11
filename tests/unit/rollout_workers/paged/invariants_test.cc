#include "rollout_workers/paged/invariants.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

// One sequence runs with two pages and a token in flight, its sibling waits.
struct Sound {
  SequenceTable table{2};
  PagePool pool{8, 4, 1};
  absl::flat_hash_map<int64_t, int> num_in_flight;
  PagedSequence *running = nullptr, *waiting = nullptr;

  Sound() {
    table.Add({.id = 7, .prompt_token_ids = {1, 2, 3, 4, 5}, .seeds = {1, 2}, .answer_tokens_max = 5});
    running = table.Find(7)->samples[0].get();
    waiting = table.Find(7)->samples[1].get();
    table.Move(running, SequenceState::kRunning);
    std::vector<PageCopy> copies;
    ExtendPages(5, pool, *running, copies);
    running->num_in_flight = 1;
    num_in_flight[running->arrival] = 1;
  }
  std::string Problem() const {
    return std::string(CheckPagedInvariants(table, pool, num_in_flight).message());
  }
};

}  // namespace

TEST_CASE("a sound state has no problem") { CHECK(Sound().Problem().empty()); }

TEST_CASE("each kind of damage is seen and named") {
  Sound sound;
  SECTION("a page is lost") {
    sound.running->pages.pop_back();
    CHECK_THAT(sound.Problem(), Catch::Contains("pages"));
  }
  SECTION("a page is referred to twice and counted once") {
    sound.running->pages[1] = sound.running->pages[0];
    CHECK_THAT(sound.Problem(), Catch::Contains("references"));
  }
  SECTION("a page is counted and held by nobody") {
    sound.pool.Allocate();
    CHECK_THAT(sound.Problem(), Catch::Contains("counts 1 references"));
  }
  SECTION("more is computed than there are tokens") {
    std::vector<PageCopy> copies;
    ExtendPages(3, sound.pool, *sound.running, copies);
    CHECK_THAT(sound.Problem(), Catch::Contains("ahead of its tokens"));
  }
  SECTION("a token in flight is forgotten") {
    sound.num_in_flight.clear();
    CHECK_THAT(sound.Problem(), Catch::Contains("tokens in flight"));
  }
  SECTION("a state does not fit its queue") {
    sound.waiting->state = SequenceState::kPaused;
    CHECK_THAT(sound.Problem(), Catch::Contains("wrong queue"));
  }
  SECTION("two sequences have one slot") {
    sound.table.Move(sound.waiting, SequenceState::kRunning);
    sound.waiting->slot = sound.running->slot;
    CHECK_THAT(sound.Problem(), Catch::Contains("slot of another"));
  }
  SECTION("a sequence waits for a sibling that is past the prompt") {
    sound.table.Move(sound.waiting, SequenceState::kRunning);
    sound.waiting->leader = sound.running;
    CHECK_THAT(sound.Problem(), Catch::Contains("waits for a sibling"));
  }
  SECTION("a token has no version") {
    sound.running->answer.push_back(3);
    CHECK_THAT(sound.Problem(), Catch::Contains("without log-probs or versions"));
  }
}

}  // namespace warpsmith::paged
