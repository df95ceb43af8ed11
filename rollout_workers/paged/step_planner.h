// The next step of a PagedBatch: a snapshot for the scheduler, its decision carried out, the plan written.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLANNER_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLANNER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rollout_workers/paged/admission_candidates.h"
#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/sequence_table.h"
#include "rollout_workers/paged/step_plan.h"
#include "rollout_workers/paged/step_scheduler.h"

namespace warpsmith::paged {

struct StepPlannerCounters {
  int64_t num_tokens_prefilled = 0;
  int64_t num_tokens_reused = 0;
  int64_t num_preemptions = 0;
};

// Holds scratch memory and counters. Within one plan pages are given back first, then prefixes are taken, then
// pages are allocated, so that no page that is copied from or found as a prefix is given out meanwhile; what
// the step computes is published last, so that it is found from the next plan on.
class StepPlanner {
 public:
  // `table` and `pool` must outlive this.
  StepPlanner(StepScheduler scheduler, SequenceTable& table, PagePool& pool)
      : scheduler_(std::move(scheduler)), table_(table), pool_(pool) {}

  // Writes a step into the empty `plan`, unpadded, or leaves it empty. Appends to `arrivals` the sequence of each
  // sample.
  void Plan(NewRequests new_requests, StepPlan& plan, std::vector<int64_t>& arrivals);

  const StepPlannerCounters& counters() const { return counters_; }

 private:
  struct Work {
    PagedSequence* sequence = nullptr;
    int num_tokens = 0;
  };

  StepDecision Decide(NewRequests new_requests);
  void ApplyPreemptions(const StepDecision& decision);
  void ApplyAdmissions(const StepDecision& decision);
  void WriteDecodes(StepPlan& plan, std::vector<int64_t>& arrivals);
  void WriteChunks(StepPlan& plan, std::vector<int64_t>& arrivals);

  StepScheduler scheduler_;
  SequenceTable& table_;
  PagePool& pool_;
  StepPlannerCounters counters_;

  // Of the plan in hand. Snapshots are parallel to sequences and candidates.
  std::vector<PagedSequence*> running_;
  std::vector<PagedSequence*> holders_;
  std::vector<AdmissionCandidate> candidates_;
  std::vector<RunningSnapshot> running_snapshots_;
  std::vector<absl::Span<const int32_t>> holder_snapshots_;
  std::vector<CandidateSnapshot> candidate_snapshots_;
  std::vector<Work> work_;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLANNER_H_
