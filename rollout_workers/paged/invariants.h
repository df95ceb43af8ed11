// What must hold between the calls of a PagedBatch. For tests.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_INVARIANTS_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_INVARIANTS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/sequence_table.h"

namespace warpsmith::paged {

// INTERNAL, with names and values, unless every page is free, cached or referenced exactly as sequences hold
// it; every sequence has the pages for what it has computed, no spare one, and is in the one queue of its
// state; running sequences have slots of their own; and as many tokens are in flight for each sequence as
// `num_in_flight` [by arrival] says.
absl::Status CheckPagedInvariants(const SequenceTable& table, const PagePool& pool,
                                  const absl::flat_hash_map<int64_t, int>& num_in_flight);

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_INVARIANTS_H_
