#include "rollout_workers/paged/sequence_table.h"

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

PagedRequest RequestOf(int64_t id, int num_samples) {
  PagedRequest request{.id = id, .prompt_token_ids = {1, 2, 3}, .answer_tokens_max = 5};
  for (int i = 0; i < num_samples; ++i) request.seeds.push_back(i);
  return request;
}

}  // namespace

TEST_CASE("sequences wait in the order in which they came") {
  SequenceTable table(2);
  table.Add(RequestOf(5, 2));
  table.Add(RequestOf(3, 1));
  CHECK(table.num_sequences() == 3);
  CHECK(table.num_requests() == 2);
  REQUIRE(table.fresh().size() == 3);
  CHECK((*table.fresh().begin())->request->id == 5);
  CHECK((*table.fresh().rbegin())->request->id == 3);
  CHECK(table.Find(4) == nullptr);
}

TEST_CASE("running sequences are in order of arrival, with a slot each that comes back") {
  SequenceTable table(2);
  table.Add(RequestOf(1, 3));
  PagedSequence* const a = table.Find(1)->samples[0].get();
  PagedSequence* const b = table.Find(1)->samples[1].get();
  PagedSequence* const c = table.Find(1)->samples[2].get();
  table.Move(b, SequenceState::kRunning);
  table.Move(a, SequenceState::kRunning);
  CHECK(table.running() == std::vector<PagedSequence*>{a, b});
  CHECK(a->slot != b->slot);
  CHECK(table.num_free_slots() == 0);
  const int slot = b->slot;
  table.Move(b, SequenceState::kPaused);
  CHECK(b->slot == -1);
  table.Move(c, SequenceState::kRunning);
  CHECK(c->slot == slot);
  CHECK(table.running() == std::vector<PagedSequence*>{a, c});
}

TEST_CASE("who has a token waits before those that have none, and who has pages is a holder") {
  SequenceTable table(2);
  table.Add(RequestOf(1, 2));
  PagedSequence* const a = table.Find(1)->samples[0].get();
  PagedSequence* const b = table.Find(1)->samples[1].get();
  table.Move(b, SequenceState::kRunning);
  b->num_in_flight = 1;
  b->pages = {4};
  table.Move(b, SequenceState::kWaiting);
  CHECK(table.returning() == SequenceSet{b});
  CHECK(table.fresh() == SequenceSet{a});
  CHECK(table.holders() == SequenceSet{b});
  table.Move(b, SequenceState::kPaused);
  CHECK(table.returning().empty());
  CHECK(table.holders() == SequenceSet{b});
  b->pages.clear();
  table.Move(b, SequenceState::kPaused);
  CHECK(table.holders().empty());
  table.Move(b, SequenceState::kRunning);
  CHECK(table.returning().empty());
}

TEST_CASE("a request ends with its last sequence, and no name is given twice") {
  SequenceTable table(2);
  table.Add(RequestOf(1, 2));
  const int64_t arrival = table.Find(1)->samples[0]->arrival;
  CHECK(table.FindSequence(arrival) == table.Find(1)->samples[0].get());
  table.Remove(table.FindSequence(arrival));
  CHECK(table.FindSequence(arrival) == nullptr);
  REQUIRE(table.Find(1) != nullptr);
  CHECK(table.Find(1)->samples[0] == nullptr);
  table.Remove(table.Find(1)->samples[1].get());
  CHECK(table.Find(1) == nullptr);
  table.Add(RequestOf(1, 1));
  CHECK(table.Find(1)->samples[0]->arrival > arrival + 1);
  CHECK(table.sequences().size() == 1);
}

TEST_CASE("a request has started once one of its answers had a slot") {
  SequenceTable table(1);
  table.Add(RequestOf(1, 1));
  table.Add(RequestOf(2, 1));
  CHECK_FALSE(table.any_started());
  table.Find(2)->started = true;
  CHECK(table.any_started());
}

}  // namespace warpsmith::paged
