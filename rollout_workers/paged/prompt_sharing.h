// Samples of a group whose prompt one of them computes for all.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PROMPT_SHARING_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PROMPT_SHARING_H_

#include <vector>

#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/paged_sequence.h"
#include "rollout_workers/paged/sequence_table.h"

namespace warpsmith::paged {

// The running sample of `request` that computes its prompt; null if none does.
PagedSequence* FindLeader(const RequestEntry& request);

// The samples that wait for what `leader` computes.
std::vector<PagedSequence*> FollowersOf(const PagedSequence& leader, SequenceTable& table);

// `leader` ends: the first of its followers, if there are any, takes over what it has computed, and the others
// follow that one.
void HandOverPrompt(PagedSequence& leader, SequenceTable& table);

// Gives the pages of a sequence back. If it ran, it waits, and so do its followers: they are computed again.
void Preempt(PagedSequence& sequence, SequenceTable& table, PagePool& pool);

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PROMPT_SHARING_H_
