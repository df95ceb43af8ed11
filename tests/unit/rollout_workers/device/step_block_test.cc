#include "rollout_workers/device/step_block.h"

#include <cstdint>
#include <vector>

#include "rollout_workers/paged/paged_batch.h"
#include "tests/support/catch.h"

namespace warpsmith::device {
namespace {

constexpr StepLimits kLimits{.queries_max = 5, .rows_max = 12, .pages_of_query_max = 3};

// Memory of a block, aligned as that of a device is.
class Memory {
 public:
  explicit Memory(size_t bytes) : words_(bytes / sizeof(Word)) {}
  std::byte* base() { return reinterpret_cast<std::byte*>(words_.data()); }

 private:
  struct alignas(16) Word {
    std::byte bytes[16];
  };
  std::vector<Word> words_;
};

std::vector<int32_t> Values(const int32_t* array, size_t count) { return {array, array + count}; }

// Two decodes, of which one copies a page, and a chunk.
paged::StepPlan MixedPlan() {
  paged::StepPlan plan;
  plan.page_copies = {{.source = 7, .destination = 8, .num_tokens = 3}};
  plan.row_indptr = {0, 1, 2, 6};
  plan.page_indptr = {0, 1, 3, 4};
  plan.page_indices = {8, 2, 3, 9};
  plan.token_ids = {-1, 5, 10, 11, 12, 13};
  plan.token_slots = {0, 1, 2, 2, 2, 2};
  plan.positions = {3, 17, 0, 1, 2, 3};
  plan.kv_entries = {131, 49, 144, 145, 146, 147};
  plan.logits_rows = {0, 1, 5};
  plan.samples = {{.seed = 1ULL << 63, .draw = 4, .logits_row = 0, .slot = 0},
                  {.seed = 12,
                   .draw = 5,
                   .sampling = {.top_p = 0.95, .min_p = 0.125, .temperature = 0.5, .top_k = 20},
                   .logits_row = 1,
                   .slot = 1},
                  {.seed = 13, .draw = 0, .logits_row = 2, .slot = 2},
                  {.seed = 14, .draw = 0, .logits_row = 2, .slot = 3}};
  plan.num_samples = 4;
  return plan;
}

}  // namespace

TEST_CASE("a packed plan reads as it was, at the places that every plan has") {
  const StepBlock block(kLimits);
  Memory memory(block.bytes());
  const paged::StepPlan plan = MixedPlan();
  const size_t bytes = block.Pack(plan, memory.base());
  const StepArrays arrays = block.ArraysAt(memory.base());
  CHECK(Values(arrays.row_indptr, 4) == plan.row_indptr);
  CHECK(Values(arrays.page_indptr, 4) == plan.page_indptr);
  CHECK(Values(arrays.page_indices, 4) == plan.page_indices);
  CHECK(Values(arrays.token_ids, 6) == plan.token_ids);
  CHECK(Values(arrays.token_slots, 6) == plan.token_slots);
  CHECK(Values(arrays.positions, 6) == plan.positions);
  CHECK(Values(arrays.kv_entries, 6) == plan.kv_entries);
  CHECK(Values(arrays.logits_rows, 3) == plan.logits_rows);
  CHECK(Values(arrays.page_copies, 3) == std::vector<int32_t>{7, 8, 3});
  for (size_t i = 0; i < plan.samples.size(); ++i) {
    const paged::SampleRow& sample = plan.samples[i];
    CHECK(arrays.seeds[i] == sample.seed);
    CHECK(arrays.draws[i] == sample.draw);
    CHECK(arrays.top_ps[i] == sample.sampling.top_p);
    CHECK(arrays.min_ps[i] == sample.sampling.min_p);
    CHECK(arrays.temperatures[i] == sample.sampling.temperature);
    CHECK(arrays.top_ks[i] == sample.sampling.top_k);
    CHECK(arrays.sample_rows[i] == sample.logits_row);
    CHECK(arrays.sample_slots[i] == sample.slot);
  }
  CHECK(reinterpret_cast<std::byte*>(arrays.page_indices + 4) == memory.base() + bytes);
}

TEST_CASE("no two arrays of a full block overlap, and all are aligned") {
  const StepBlock block(kLimits);
  Memory memory(block.bytes());
  const StepArrays arrays = block.ArraysAt(memory.base());
  const std::vector<const void*> begins = {
      arrays.seeds,       arrays.draws,       arrays.top_ps,       arrays.min_ps,      arrays.temperatures,
      arrays.top_ks,      arrays.sample_rows, arrays.sample_slots, arrays.logits_rows, arrays.row_indptr,
      arrays.page_indptr, arrays.token_ids,   arrays.token_slots,  arrays.positions,   arrays.kv_entries,
      arrays.page_copies, arrays.page_indices};
  const std::vector<size_t> sizes = {40, 40, 40, 40, 20, 20, 20, 20, 20, 24, 24, 48, 48, 48, 48, 60, 60};
  for (size_t i = 0; i < begins.size(); ++i) {
    CHECK(reinterpret_cast<uintptr_t>(begins[i]) % 16 == 0);
    const auto* const end = static_cast<const std::byte*>(begins[i]) + sizes[i];
    const auto* const next =
        i + 1 < begins.size() ? static_cast<const std::byte*>(begins[i + 1]) : memory.base() + block.bytes();
    CHECK(end <= next);
  }
}

TEST_CASE("the shape of a plan counts its padding and its longest chunk") {
  const StepShape mixed = ShapeOf(MixedPlan());
  CHECK(mixed.num_queries == 3);
  CHECK(mixed.num_rows == 6);
  CHECK(mixed.num_logits_rows == 3);
  CHECK(mixed.num_samples == 4);
  CHECK(mixed.rows_of_query_max == 4);

  const auto batch = paged::PagedBatch::Create({.num_pages = 9,
                                                .page_tokens = 4,
                                                .sequences_max = 4,
                                                .context_tokens_max = 8,
                                                .decode_buckets = {4},
                                                .num_token_ids = 10},
                                               0)
                         .value();
  REQUIRE(batch->Submit({.id = 1, .prompt_token_ids = {1, 2}, .seeds = {3}, .answer_tokens_max = 3}).ok());
  REQUIRE_FALSE(batch->Plan().empty());
  const StepShape padded = ShapeOf(batch->Plan());
  CHECK(padded.num_queries == 4);
  CHECK(padded.num_rows == 4);
  CHECK(padded.num_logits_rows == 4);
  CHECK(padded.num_samples == 4);
  CHECK(padded.rows_of_query_max == 1);
}

}  // namespace warpsmith::device
