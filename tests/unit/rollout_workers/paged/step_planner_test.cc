#include "rollout_workers/paged/step_planner.h"

#include <numeric>

#include "rollout_workers/paged/step_builder.h"
#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

struct Planning {
  SequenceTable table{6};
  PagePool pool;
  StepPlanner planner;
  StepPlan plan;
  std::vector<int64_t> arrivals;

  explicit Planning(int num_pages, int prefill_tokens_max = 16)
      : pool(num_pages, 4, 1), planner(StepScheduler(prefill_tokens_max, 4), table, pool) {}

  void Add(int64_t id, int num_prompt_tokens, int num_samples, int first_token = 1) {
    PagedRequest request{.id = id, .answer_tokens_max = 50};
    request.prompt_token_ids.resize(num_prompt_tokens);
    std::iota(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), first_token);
    for (int i = 0; i < num_samples; ++i) request.seeds.push_back(i);
    table.Add(std::move(request));
  }
  PagedSequence* Sample(int64_t id, int index) { return table.Find(id)->samples[index].get(); }
  const StepPlan& Plan(NewRequests new_requests = NewRequests::kStart) {
    ClearPlan(plan);
    arrivals.clear();
    planner.Plan(new_requests, plan, arrivals);
    return plan;
  }
  // As if every result had been read.
  void Read() {
    for (const int64_t arrival : arrivals) {
      PagedSequence* const sequence = table.FindSequence(arrival);
      sequence->num_in_flight = 0;
      sequence->answer.push_back(500 + static_cast<int32_t>(sequence->answer.size()));
    }
  }
};

}  // namespace

TEST_CASE("a plan without requests is empty") {
  Planning planning(10);
  CHECK(planning.Plan().empty());
}

TEST_CASE("decodes come before chunks, and samples name their sequences in that order") {
  Planning planning(40);
  planning.Add(1, 3, 2);
  planning.Plan();
  CHECK(planning.arrivals.size() == 2);
  planning.Add(2, 6, 1, 100);
  const StepPlan& plan = planning.Plan();
  CHECK(plan.num_decodes == 2);
  CHECK(plan.row_indptr == std::vector<int32_t>{0, 1, 2, 8});
  CHECK(planning.arrivals == std::vector<int64_t>{planning.Sample(1, 0)->arrival,
                                                  planning.Sample(1, 1)->arrival,
                                                  planning.Sample(2, 0)->arrival});
}

TEST_CASE("what a step computes is a prefix from the next plan on, not within it") {
  Planning planning(40, 32);
  planning.Add(1, 10, 1);
  planning.Add(2, 10, 1);
  CHECK(planning.Plan().num_rows() == 10);
  planning.Add(3, 10, 1);
  // The decode of the first, and what is behind the two pages that the others find.
  CHECK(planning.Plan().num_rows() == 1 + 2 + 2);
}

TEST_CASE("late samples of a group follow the one that computes the prompt") {
  Planning planning(40, 4);
  planning.Add(1, 3, 4, 100);
  planning.Plan();
  planning.Add(2, 12, 5);  // two slots are free
  planning.Plan();
  CHECK(planning.Sample(2, 1)->leader == planning.Sample(2, 0));
  CHECK(planning.Sample(2, 2)->state == SequenceState::kWaiting);
  PagedSequence* const ended = planning.Sample(1, 0);
  ReleasePages(planning.pool, *ended);
  planning.table.Remove(ended);
  planning.Plan();
  CHECK(planning.Sample(2, 2)->leader == planning.Sample(2, 0));
  planning.Plan();  // the last chunk
  CHECK(planning.Sample(2, 2)->leader == nullptr);
  CHECK(planning.Sample(2, 2)->num_in_flight == 1);
  CHECK(planning.Sample(2, 2)->pages == planning.Sample(2, 0)->pages);
}

TEST_CASE("held requests wait unless one of their samples has started") {
  Planning planning(40);
  planning.Add(1, 3, 8);
  planning.Add(2, 3, 1, 100);
  planning.Plan();
  CHECK(planning.table.Find(1)->started);
  CHECK_FALSE(planning.table.Find(2)->started);
  PagedSequence* const ended = planning.Sample(1, 0);
  ReleasePages(planning.pool, *ended);
  planning.table.Remove(ended);
  planning.Plan(NewRequests::kHold);
  CHECK(planning.Sample(1, 6)->state == SequenceState::kRunning);
  for (int i = 1; i < 8; ++i) {
    PagedSequence* const sample = planning.Sample(1, i);
    ReleasePages(planning.pool, *sample);
    planning.table.Remove(sample);
  }
  CHECK(planning.Plan(NewRequests::kHold).empty());
  CHECK_FALSE(planning.Plan().empty());
}

TEST_CASE("a sequence to compute again waits until its tokens are read, and nobody overtakes it") {
  Planning planning(40);
  planning.Add(1, 3, 1);
  planning.Plan();
  PagedSequence* const sequence = planning.Sample(1, 0);
  ReleasePages(planning.pool, *sequence);
  planning.table.Move(sequence, SequenceState::kWaiting);
  planning.Add(2, 3, 1);
  CHECK(planning.Plan().empty());
  planning.arrivals = {sequence->arrival};
  planning.Read();
  const StepPlan& plan = planning.Plan();
  CHECK(plan.owners[0].request_id == 1);
  CHECK(plan.row_indptr[1] == 4);  // three of the prompt and one of the answer
  CHECK(plan.samples[0].draw == 1);
}

TEST_CASE("holders give pages back so that somebody can be admitted, within one plan") {
  Planning planning(5);
  planning.Add(1, 12, 1);
  planning.Plan();
  planning.Read();
  PagedSequence* const paused = planning.Sample(1, 0);
  planning.table.Move(paused, SequenceState::kPaused);
  planning.Add(2, 14, 1, 100);
  CHECK(planning.Plan().num_rows() == 14);
  CHECK(paused->pages.empty());
  CHECK(planning.planner.counters().num_preemptions == 1);
}

TEST_CASE("what is found or shared is counted as reused") {
  Planning planning(40);
  planning.Add(1, 9, 3);
  planning.Plan();
  CHECK(planning.planner.counters().num_tokens_prefilled == 9);
  CHECK(planning.planner.counters().num_tokens_reused == 18);
  planning.Add(2, 9, 1);
  planning.Plan();
  CHECK(planning.planner.counters().num_tokens_prefilled == 10);
  CHECK(planning.planner.counters().num_tokens_reused == 26);
}

}  // namespace warpsmith::paged
