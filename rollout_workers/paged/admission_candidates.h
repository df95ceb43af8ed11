// Which sequences of a PagedBatch could get a slot in the next step, and what each would take.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_ADMISSION_CANDIDATES_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_ADMISSION_CANDIDATES_H_

#include <cstdint>
#include <vector>

#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/paged_sequence.h"
#include "rollout_workers/paged/sequence_table.h"
#include "rollout_workers/paged/step_scheduler.h"

namespace warpsmith::paged {

// Whether requests of which nothing has had a slot may start.
enum class NewRequests { kStart, kHold };

// Samples of one group that have not begun, or one sequence that has.
struct AdmissionCandidate {
  std::vector<PagedSequence*> samples;
  // Runs already and computes the prompt; null: the first of the samples will.
  PagedSequence* leader = nullptr;
  // Known pages that hold the beginning of the first sample.
  std::vector<int32_t> prefix_pages;
  // All but its `holder`.
  CandidateSnapshot snapshot;
};

// Prefixes that one call looks for: bounds its time.
inline constexpr int kPrefixSearchesMax = 32;

// In the order in which they have to be served: sequences with a token, then those without, each oldest first.
// The list ends where the slots, the pages, `prefill_tokens_max` or the searches do, and before a sequence of which
// tokens are in flight: it cannot be computed again until they are read.
//
// A sequence that would compute the same next page as one before it, behind the same prefix, is passed over: one
// step later it finds the page. So of many that begin alike, new groups or samples of one group that all start
// over, one computes the beginning. It is the only case in which others overtake it, and each time one that came
// before it gets on.
std::vector<AdmissionCandidate> CollectCandidates(const SequenceTable& table, const PagePool& pool,
                                                  int prefill_tokens_max, NewRequests new_requests);

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_ADMISSION_CANDIDATES_H_
