#include "rollout_workers/paged/step_builder.h"

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

using Ints = std::vector<int32_t>;

StepPlan EmptyPlan() {
  StepPlan plan;
  ClearPlan(plan);
  return plan;
}

// A decode at position 6, in pages of 4.
PagedSequence Decoding(const PagedRequest& request, int slot) {
  return {.request = &request,
          .slot = slot,
          .answer = {60},
          .num_in_flight = 1,
          .num_computed = 7,
          .pages = {5, 9}};
}

const PagedRequest kRequest = {.id = 3,
                               .prompt_token_ids = {10, 11, 12, 13, 14},
                               .seeds = {100, 200},
                               .sampling = {.min_p = 0.1, .temperature = 0.5F, .top_k = 7},
                               .answer_tokens_max = 9};

}  // namespace

TEST_CASE("a decode is one row that reads its token on the device and writes behind its pages") {
  const PagedSequence sequence = Decoding(kRequest, 2);
  StepPlan plan = EmptyPlan();
  AppendQuery(sequence, 1, 4, plan);
  CHECK(plan.token_ids == Ints{kTokenOnDevice});
  CHECK(plan.token_slots == Ints{2});
  CHECK(plan.positions == Ints{6});
  CHECK(plan.kv_entries == Ints{9 * 4 + 2});
  CHECK(plan.row_indptr == Ints{0, 1});
  CHECK(plan.page_indptr == Ints{0, 2});
  CHECK(plan.page_indices == Ints{5, 9});
  CHECK(plan.last_page_tokens == Ints{3});
  CHECK(plan.owners[0].request_id == 3);
}

TEST_CASE("a decode whose token was read names it") {
  PagedSequence sequence = Decoding(kRequest, 2);
  sequence.num_in_flight = 0;
  sequence.num_computed = 6;
  StepPlan plan = EmptyPlan();
  AppendQuery(sequence, 1, 4, plan);
  CHECK(plan.token_ids == Ints{60});
  CHECK(plan.positions == Ints{5});
}

TEST_CASE("a chunk has a row a token, over the end of pages") {
  const PagedSequence sequence{.request = &kRequest, .slot = 0, .num_computed = 5, .pages = {7, 3}};
  StepPlan plan = EmptyPlan();
  AppendQuery(sequence, 3, 4, plan);
  CHECK(plan.token_ids == Ints{12, 13, 14});
  CHECK(plan.positions == Ints{2, 3, 4});
  CHECK(plan.kv_entries == Ints{30, 31, 12});
  CHECK(plan.last_page_tokens == Ints{1});
  CHECK(plan.row_indptr == Ints{0, 3});
}

TEST_CASE("a full last page counts all its entries") {
  const PagedSequence sequence{.request = &kRequest, .slot = 0, .num_computed = 4, .pages = {7}};
  StepPlan plan = EmptyPlan();
  AppendQuery(sequence, 4, 4, plan);
  CHECK(plan.last_page_tokens == Ints{4});
}

TEST_CASE("the samples of a group share one row of logits, each with its seed, draw and slot") {
  PagedSequence a{.request = &kRequest, .slot = 4, .num_computed = 5, .pages = {7, 3}};
  PagedSequence b{.request = &kRequest, .sample_index = 1, .slot = 6};
  PagedSequence decode = Decoding(kRequest, 2);
  StepPlan plan = EmptyPlan();
  AppendQuery(a, 5, 4, plan);
  PagedSequence* const group[] = {&a, &b};
  AppendSamples(group, plan);
  AppendQuery(decode, 1, 4, plan);
  PagedSequence* const alone[] = {&decode};
  AppendSamples(alone, plan);
  CHECK(plan.logits_rows == Ints{4, 5});
  REQUIRE(plan.num_samples == 3);
  CHECK(plan.samples[1].seed == 200);
  CHECK(plan.samples[1].draw == 0);
  CHECK(plan.samples[1].logits_row == 0);
  CHECK(plan.samples[1].slot == 6);
  CHECK(plan.samples[1].sampling.top_k == 7);
  CHECK(plan.samples[1].sampling.min_p == 0.1);
  CHECK(plan.samples[2].logits_row == 1);
  CHECK(plan.samples[2].draw == 2);
}

TEST_CASE("decodes are padded to the smallest bucket that holds them, by rows of the padding page") {
  const PagedSequence sequence = Decoding(kRequest, 1);
  PagedSequence copy = sequence;
  PagedSequence* const sampler[] = {&copy};
  StepPlan plan = EmptyPlan();
  for (int i = 0; i < 3; ++i) {
    AppendQuery(sequence, 1, 4, plan);
    AppendSamples(sampler, plan);
  }
  plan.num_decodes = 3;
  PadToBucket({1, 2, 4, 8}, 12, plan);
  CHECK(plan.decode_bucket == 4);
  CHECK(plan.num_rows() == 4);
  CHECK(plan.token_ids.back() == 0);
  CHECK(plan.positions.back() == 0);
  CHECK(plan.kv_entries.back() / 4 == kPaddingPage);
  CHECK(plan.row_indptr == Ints{0, 1, 2, 3, 4});
  CHECK(plan.page_indptr == Ints{0, 2, 4, 6, 7});
  CHECK(plan.page_indices.back() == kPaddingPage);
  CHECK(plan.logits_rows == Ints{0, 1, 2, 3});
  CHECK(plan.samples.size() == 4);
  CHECK(plan.samples.back().slot == 12);
  CHECK(plan.samples.back().sampling.temperature == 0);
  CHECK(plan.num_samples == 3);
  CHECK(plan.owners.size() == 3);
}

TEST_CASE("a bucket that fits exactly needs no padding, and none fits more decodes or a chunk") {
  const PagedSequence sequence = Decoding(kRequest, 1);
  StepPlan plan = EmptyPlan();
  for (int i = 0; i < 2; ++i) AppendQuery(sequence, 1, 4, plan);
  plan.num_decodes = 2;
  StepPlan exact = plan, over = plan, mixed = plan;
  PadToBucket({2, 4}, 12, exact);
  CHECK(exact.decode_bucket == 2);
  CHECK(exact.num_rows() == 2);
  PadToBucket({1}, 12, over);
  CHECK(over.decode_bucket == 0);
  mixed.num_decodes = 1;
  PadToBucket({2, 4}, 12, mixed);
  CHECK(mixed.decode_bucket == 0);
  CHECK(mixed.num_rows() == 2);
}

TEST_CASE("a cleared plan is like a new one") {
  const PagedSequence sequence = Decoding(kRequest, 1);
  StepPlan plan = EmptyPlan();
  AppendQuery(sequence, 1, 4, plan);
  plan.page_copies.push_back({});
  plan.num_decodes = 1;
  PadToBucket({4}, 12, plan);
  ClearPlan(plan);
  CHECK(plan.empty());
  CHECK(plan.num_rows() == 0);
  CHECK(plan.decode_bucket == 0);
  CHECK(plan.page_copies.empty());
  CHECK(plan.row_indptr == Ints{0});
  CHECK(plan.page_indptr == Ints{0});
  CHECK(plan.samples.empty());
  CHECK(plan.logits_rows.empty());
}

}  // namespace warpsmith::paged
