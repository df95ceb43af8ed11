// Which sequences compute what in the next step, and which give pages back for it: a pure function of a snapshot.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_SCHEDULER_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace warpsmith::paged {

// A sequence that has a slot.
struct RunningSnapshot {
  int num_computed = 0;
  // Positions it could compute now; 0: it waits for tokens in flight or for a sibling.
  int num_wanted = 0;
  // One token behind what is computed: it costs nothing of the prefill budget.
  bool is_decoding = false;
  absl::Span<const int32_t> pages;
};

// Sequences that may get a slot: the samples of one group that have not begun, or one that has.
struct CandidateSnapshot {
  int num_samples = 1;
  // Positions that have to be computed before its first token can be sampled, those in cached prefixes left
  // out.
  int num_wanted = 0;
  // What it takes from the available pages to hold all its tokens: new pages, and the cached ones that it
  // would refer to.
  int num_pages = 0;
  // A sibling that runs computes the prompt already: admitting costs no page and no prefill.
  bool joins_sibling = false;
  // Its own place in `holders`, -1 if it has no pages.
  int holder = -1;
};

struct StepSnapshot {
  // Oldest first.
  absl::Span<const RunningSnapshot> running;
  // Pages of the sequences that have some and no slot: paused or waiting. Oldest first.
  absl::Span<const absl::Span<const int32_t>> holders;
  // In the order in which they have to be served.
  absl::Span<const CandidateSnapshot> candidates;
  absl::Span<const int32_t> ref_counts;  // of every page
  int num_available_pages = 0;
  int num_free_slots = 0;
};

struct StepDecision {
  struct Work {
    int running = 0;  // index into the snapshot
    int num_tokens = 0;
  };
  struct Admission {
    int candidate = 0;  // index into the snapshot
    int num_samples = 0;
    int num_tokens = 0;  // of the prompt in this step; 0 where a sibling computes it
  };
  // Indexes into the snapshot. They give all their pages back before any page is taken.
  std::vector<int> preempted_holders;
  std::vector<int> preempted_running;
  std::vector<Work> work;  // oldest first
  std::vector<Admission> admissions;
};

// The rules:
// - Every running sequence that is decoding gets its row in every step; prompts share what the prefill budget
//   has, oldest first. So a long prompt delays no next token by more than one chunk.
// - Pages go to the oldest first. Where they run out, sequences without a slot give theirs back, the youngest
//   first, then running ones that are younger than the one in need, the youngest first. A sequence that finds
//   no such victim waits with its pages. So the oldest always gets on, and each becomes the oldest.
// - Candidates are admitted in their order and never overtake, once no prompt that runs wants more of the budget.
//   One is admitted if all its tokens fit and a page for every running sequence is left, so that it does not
//   lead to preemption at once. If nothing runs, fitting is enough, and holders give pages back for it.
// - A step that preempts admits no sequence.
// The object holds scratch memory only. Not thread-safe.
class StepScheduler {
 public:
  // Prompt tokens a step, at least 1; entries a page.
  StepScheduler(int prefill_tokens_max, int page_tokens)
      : prefill_tokens_max_(prefill_tokens_max), page_tokens_(page_tokens) {}

  StepDecision Decide(const StepSnapshot& snapshot);
  int prefill_tokens_max() const { return prefill_tokens_max_; }

 private:
  void Serve(int index);
  int PagesNeeded(const RunningSnapshot& sequence, int num_tokens) const;
  // How many of the wanted tokens the available pages take.
  int TokensThatFit(const RunningSnapshot& sequence, int num_tokens) const;
  // Takes the pages of the next victim, if there is one for running sequence `index`.
  bool PreemptFor(int index);
  void ReleasePages(absl::Span<const int32_t> pages);
  void AdmitCandidates();
  int NumAdmitted(const CandidateSnapshot& candidate) const;
  void FreePagesFor(const CandidateSnapshot& candidate);
  int RefCount(int32_t page) const { return snapshot_->ref_counts[page] + changes_[page]; }
  void ChangeRefCount(int32_t page, int change);

  const int prefill_tokens_max_;
  const int page_tokens_;

  // Of the decision in hand.
  const StepSnapshot* snapshot_ = nullptr;
  StepDecision decision_;
  int num_available_ = 0;
  int prefill_tokens_left_ = 0;
  int num_running_ = 0;
  int num_free_slots_ = 0;
  int next_holder_ = 0;           // holders from here on were preempted
  int next_running_ = 0;          // likewise
  std::vector<int32_t> changes_;  // of reference counts, by page; 0 between decisions
  std::vector<int32_t> changed_pages_;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_SCHEDULER_H_
