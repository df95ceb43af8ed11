#include "rollout_workers/paged/step_builder.h"

#include <algorithm>

namespace warpsmith::paged {

void ClearPlan(StepPlan& plan) {
  plan.num_decodes = plan.decode_bucket = plan.num_samples = 0;
  plan.wants_top_tokens = false;
  for (std::vector<int32_t>* const array :
       {&plan.page_indices, &plan.last_page_tokens, &plan.token_ids, &plan.token_slots, &plan.positions,
        &plan.kv_entries, &plan.logits_rows}) {
    array->clear();
  }
  plan.row_indptr.assign(1, 0);
  plan.page_indptr.assign(1, 0);
  plan.page_copies.clear();
  plan.samples.clear();
  plan.owners.clear();
}

void AppendQuery(const PagedSequence& sequence, int num_tokens, int page_tokens, StepPlan& plan) {
  const int begin = sequence.num_computed - num_tokens;
  for (int position = begin; position < sequence.num_computed; ++position) {
    const bool known = position < sequence.num_known();
    plan.token_ids.push_back(known ? sequence.token_id(position) : kTokenOnDevice);
    plan.token_slots.push_back(sequence.slot);
    plan.positions.push_back(position);
    plan.kv_entries.push_back(sequence.pages[position / page_tokens] * page_tokens + position % page_tokens);
  }
  plan.row_indptr.push_back(plan.num_rows());
  plan.page_indices.insert(plan.page_indices.end(), sequence.pages.begin(), sequence.pages.end());
  plan.page_indptr.push_back(static_cast<int32_t>(plan.page_indices.size()));
  plan.last_page_tokens.push_back((sequence.num_computed - 1) % page_tokens + 1);
  plan.owners.push_back({.request_id = sequence.request->id, .sample_index = sequence.sample_index});
}

void AppendSamples(absl::Span<PagedSequence* const> samplers, StepPlan& plan) {
  const auto logits_row = static_cast<int32_t>(plan.logits_rows.size());
  plan.logits_rows.push_back(plan.num_rows() - 1);
  for (const PagedSequence* const sequence : samplers) {
    plan.samples.push_back({.seed = sequence->request->seeds[sequence->sample_index],
                            .draw = static_cast<uint64_t>(sequence->num_answer_tokens()),
                            .sampling = sequence->request->sampling,
                            .logits_row = logits_row,
                            .slot = sequence->slot,
                            .num_top_tokens = sequence->request->num_top_tokens});
    plan.wants_top_tokens |= sequence->request->num_top_tokens > 0;
  }
  plan.num_samples = static_cast<int>(plan.samples.size());
}

void PadToBucket(absl::Span<const int> buckets, int slot, StepPlan& plan) {
  if (plan.num_decodes == 0 || plan.num_decodes != std::ssize(plan.owners)) return;
  const auto bucket = std::lower_bound(buckets.begin(), buckets.end(), plan.num_decodes);
  if (bucket == buckets.end()) return;
  plan.decode_bucket = *bucket;
  for (int row = plan.num_decodes; row < *bucket; ++row) {
    plan.token_ids.push_back(0);
    plan.token_slots.push_back(slot);
    plan.positions.push_back(0);
    plan.kv_entries.push_back(0);
    plan.row_indptr.push_back(row + 1);
    plan.page_indices.push_back(kPaddingPage);
    plan.page_indptr.push_back(static_cast<int32_t>(plan.page_indices.size()));
    plan.last_page_tokens.push_back(1);
    plan.logits_rows.push_back(row);
    plan.samples.push_back({.sampling = {.temperature = 0}, .logits_row = row, .slot = slot});
  }
}

}  // namespace warpsmith::paged
