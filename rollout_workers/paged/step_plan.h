// What a device computes in one step: the contract between PagedBatch, which decides, and a driver, which runs
// kernels.
//
// Letters of shapes: Q queries (a query is the rows of one sequence in this step), R rows (a row is one token
// of a query), L rows whose logits are wanted, S samples. Integers are int32 and arrays are contiguous, so that
// a driver copies each as it is into a static buffer. Without padding Q, L, S and the number of page copies are at
// most sequences_max, R is at most sequences_max + prefill_tokens_max, and a query has at most as many pages as
// context_tokens_max takes.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLAN_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLAN_H_

#include <cstdint>
#include <vector>

#include "rollout_workers/paged/paged_request.h"

namespace warpsmith::paged {

// In StepPlan::token_ids: the row's token was sampled by an earlier step and may not be on the host yet. It is
// in last_tokens[token_slots[row]].
inline constexpr int32_t kTokenOnDevice = -1;

// The first `num_tokens` tokens of page `source`, keys and values of every layer, become those of
// `destination`.
struct PageCopy {
  int32_t source = 0;
  int32_t destination = 0;
  int32_t num_tokens = 0;
  bool operator==(const PageCopy&) const = default;
};

// One token to sample. The definition is that of rollout_workers/sampler.h, with
// uniform = UniformDouble(seed, draw) of core/base/counter_random.h.
struct SampleRow {
  uint64_t seed = 0;
  uint64_t draw = 0;  // index of the token in its answer
  TokenSampling sampling;
  int32_t logits_row = 0;  // index into StepPlan::logits_rows
  int32_t slot = 0;        // the token goes to last_tokens[slot] as well
  // Most probable tokens of the row that are wanted with the result, most probable first: core/kernels/top_tokens.h.
  int32_t num_top_tokens = 0;
};

// Whose rows a query has. For traces and checks; no kernel needs it.
struct QueryOwner {
  int64_t request_id = 0;
  int32_t sample_index = 0;
};

// A driver owns, on the device: the pages, [num_pages, page_tokens] entries a layer; last_tokens
// [sequences_max + 1], of which the last is for padding; and a buffer for each array below. It carries out
// every plan, in the order in which they were made, each in this order:
//   1. page_copies, all at once: no destination occurs twice or is a source.
//   2. The layers. In each, all rows write their key and value to entry kv_entries[row] (page * page_tokens +
//      offset) before any row attends. Row r of query q attends to the positions 0 to positions[r] of its
//      sequence: position p is entry p % page_tokens of page page_indices[page_indptr[q] + p / page_tokens].
//      No query attends to an entry that another query of the step writes: a prefix is found only where an earlier
//      plan computes it. So a driver may read what is before a query's first position before any row writes, and a
//      query of one row needs only its own row's key and value besides. Padding rows all write entry 0 of their page
//      and attend to it; what they find is not used.
//   3. Logits of logits_rows, and samples. Sample i writes last_tokens, and result i of the step.
// A step may be launched before the results of the one before it are read, because no array here depends on a
// token's value. A plan is plain data: the ranks of a tensor-parallel group carry out the same one.
// page_indptr, page_indices and last_page_tokens are what FlashInfer calls kv_indptr, kv_indices and
// kv_last_page_len; row_indptr is its qo_indptr. A prefill chunk sees what its sequence has computed before it
// through the same pages.
struct StepPlan {
  // Consecutive from 0. Of plans with work only.
  uint64_t step = 0;
  // Of the weights to use.
  uint64_t policy_version = 0;

  std::vector<PageCopy> page_copies;

  // Queries 0 to num_decodes - 1 have one row and one sample each, and sample i is of row i. The rest are
  // chunks of prompts, or of sequences that are computed again.
  int num_decodes = 0;
  // Over 0: there are no chunks, and everything below is padded to this many queries, rows, logits and samples,
  // so that the CUDA graph of this size can run it. A padding row feeds token 0 at position 0 of the padding
  // page, and samples greedily into the last slot. 0: the step fits no graph.
  int decode_bucket = 0;

  std::vector<int32_t> row_indptr;        // [Q + 1] first row of each query
  std::vector<int32_t> page_indptr;       // [Q + 1] first page of each query, in page_indices
  std::vector<int32_t> page_indices;      // pages that hold what the query's rows attend to
  std::vector<int32_t> last_page_tokens;  // [Q] entries of the last page after this step, 1 to page_tokens

  std::vector<int32_t> token_ids;    // [R] or kTokenOnDevice
  std::vector<int32_t> token_slots;  // [R] only read where the token is on the device
  std::vector<int32_t> positions;    // [R]
  std::vector<int32_t> kv_entries;   // [R]

  std::vector<int32_t> logits_rows;  // [L] ascending
  // [S] Several may be of one row: the samples of a group, after its prompt.
  std::vector<SampleRow> samples;
  // Results to give to PagedBatch::Complete: of the first num_samples, padding left out.
  int num_samples = 0;
  // Whether a sample wants top tokens.
  bool wants_top_tokens = false;

  std::vector<QueryOwner> owners;  // [Q] padding left out

  bool empty() const { return owners.empty(); }
  int num_rows() const { return static_cast<int>(token_ids.size()); }
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_STEP_PLAN_H_
