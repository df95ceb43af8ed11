// Writes sequences into a StepPlan.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_BUILDER_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_BUILDER_H_

#include "absl/types/span.h"
#include "rollout_workers/paged/paged_sequence.h"
#include "rollout_workers/paged/step_plan.h"

namespace warpsmith::paged {

// Empties every array and keeps its memory.
void ClearPlan(StepPlan& plan);

// Appends one query with a row for each of the last `num_tokens` positions that `sequence` has computed:
// ExtendPages comes before. Its token is on the device if it was not read yet.
void AppendQuery(const PagedSequence& sequence, int num_tokens, int page_tokens, StepPlan& plan);

// Wants the logits of the last row, and samples the next token of each of `samplers` from them.
void AppendSamples(absl::Span<PagedSequence* const> samplers, StepPlan& plan);

// Pads a plan of decodes alone to the smallest of `buckets` (ascending) that holds them; none may. `slot` is
// the one for padding.
void PadToBucket(absl::Span<const int> buckets, int slot, StepPlan& plan);

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_BUILDER_H_
