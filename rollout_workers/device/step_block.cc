#include "rollout_workers/device/step_block.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace warpsmith::device {
namespace {

constexpr size_t kAlignment = 16;

// Calls visit(array, room for how many elements) in the order in which arrays lie: the widest elements first.
template <typename Visit>
void VisitArrays(StepArrays& arrays, const StepLimits& limits, const Visit& visit) {
  visit(arrays.seeds, limits.queries_max);
  visit(arrays.draws, limits.queries_max);
  visit(arrays.top_ps, limits.queries_max);
  visit(arrays.min_ps, limits.queries_max);
  visit(arrays.temperatures, limits.queries_max);
  visit(arrays.top_ks, limits.queries_max);
  visit(arrays.sample_rows, limits.queries_max);
  visit(arrays.sample_slots, limits.queries_max);
  visit(arrays.logits_rows, limits.queries_max);
  visit(arrays.row_indptr, limits.queries_max + 1);
  visit(arrays.page_indptr, limits.queries_max + 1);
  visit(arrays.token_ids, limits.rows_max);
  visit(arrays.token_slots, limits.rows_max);
  visit(arrays.positions, limits.rows_max);
  visit(arrays.kv_entries, limits.rows_max);
  visit(arrays.page_copies, 3 * limits.queries_max);
  visit(arrays.page_indices, limits.page_indices_max());
}

void CopyTo(int32_t* array, const std::vector<int32_t>& values, int64_t room) {
  WS_CHECK(std::ssize(values) <= room) << values.size() << " elements for the room of " << room;
  std::copy(values.begin(), values.end(), array);
}

void PackSamples(const paged::StepPlan& plan, const StepArrays& arrays) {
  for (size_t i = 0; i < plan.samples.size(); ++i) {
    const paged::SampleRow& sample = plan.samples[i];
    arrays.seeds[i] = sample.seed;
    arrays.draws[i] = sample.draw;
    arrays.top_ps[i] = sample.sampling.top_p;
    arrays.min_ps[i] = sample.sampling.min_p;
    arrays.temperatures[i] = sample.sampling.temperature;
    arrays.top_ks[i] = sample.sampling.top_k;
    arrays.sample_rows[i] = sample.logits_row;
    arrays.sample_slots[i] = sample.slot;
  }
}

void PackCopies(const paged::StepPlan& plan, int32_t* copies) {
  for (const paged::PageCopy& copy : plan.page_copies) {
    *copies++ = copy.source;
    *copies++ = copy.destination;
    *copies++ = copy.num_tokens;
  }
}

}  // namespace

StepShape ShapeOf(const paged::StepPlan& plan) {
  StepShape shape{.num_queries = std::ssize(plan.row_indptr) - 1,
                  .num_rows = plan.num_rows(),
                  .num_logits_rows = std::ssize(plan.logits_rows),
                  .num_samples = std::ssize(plan.samples)};
  for (int64_t query = 0; query < shape.num_queries; ++query) {
    const int64_t num_rows = plan.row_indptr[query + 1] - plan.row_indptr[query];
    shape.rows_of_query_max = std::max(shape.rows_of_query_max, num_rows);
  }
  return shape;
}

StepBlock::StepBlock(const StepLimits& limits) : limits_(limits) {
  StepArrays unused;
  VisitArrays(unused, limits_, [this](auto* array, int64_t room) {
    bytes_ += (static_cast<size_t>(room) * sizeof(*array) + kAlignment - 1) / kAlignment * kAlignment;
  });
}

StepArrays StepBlock::ArraysAt(std::byte* base) const {
  StepArrays arrays;
  VisitArrays(arrays, limits_, [&base]<typename T>(T*& array, int64_t room) {
    array = reinterpret_cast<T*>(base);
    base += (static_cast<size_t>(room) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  });
  return arrays;
}

size_t StepBlock::Pack(const paged::StepPlan& plan, std::byte* base) const {
  const auto queries_max = static_cast<size_t>(limits_.queries_max);
  WS_CHECK(plan.samples.size() <= queries_max && plan.page_copies.size() <= queries_max)
      << plan.samples.size() << " samples and " << plan.page_copies.size() << " copies for the room of "
      << queries_max;
  const StepArrays arrays = ArraysAt(base);
  PackSamples(plan, arrays);
  PackCopies(plan, arrays.page_copies);
  CopyTo(arrays.logits_rows, plan.logits_rows, limits_.queries_max);
  CopyTo(arrays.row_indptr, plan.row_indptr, limits_.queries_max + 1);
  CopyTo(arrays.page_indptr, plan.page_indptr, limits_.queries_max + 1);
  CopyTo(arrays.token_ids, plan.token_ids, limits_.rows_max);
  CopyTo(arrays.token_slots, plan.token_slots, limits_.rows_max);
  CopyTo(arrays.positions, plan.positions, limits_.rows_max);
  CopyTo(arrays.kv_entries, plan.kv_entries, limits_.rows_max);
  CopyTo(arrays.page_indices, plan.page_indices, limits_.page_indices_max());
  const auto* const end = reinterpret_cast<const std::byte*>(arrays.page_indices + plan.page_indices.size());
  return static_cast<size_t>(end - base);
}

}  // namespace warpsmith::device
