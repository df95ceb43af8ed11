// The requests, sequences and KV-cache pages of one device: decides each step, takes its tokens.
//
// Pure bookkeeping: no device, no thread, no clock. A driver carries out the plans:
//
//   StepPlan plans[2];
//   for (int i = 0; ; i ^= 1) {
//     plans[i] = batch->Plan(std::move(plans[i]));  // while the step before still runs
//     if (!plans[i].empty()) launch it, and the copy of its results to the host;
//     if a step before is in flight: wait for its results; batch->Complete(results);
//   }
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_BATCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_BATCH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rollout_workers/paged/entries_on_change.h"
#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/paged_request.h"
#include "rollout_workers/paged/sequence_table.h"
#include "rollout_workers/paged/step_plan.h"
#include "rollout_workers/paged/step_planner.h"

namespace warpsmith::paged {

struct PagedBatchOptions {
  // Pages of the device, the padding page among them, and entries a page.
  int num_pages = 0;
  int page_tokens = 16;
  // Sequences that run together. A step has at most sequences_max + prefill_tokens_max rows.
  int sequences_max = 64;
  // Answers of all requests that may wait, run or be paused; more are refused.
  int samples_max = 4096;
  // Tokens of prompt and answer together.
  int context_tokens_max = 2048;
  // Prompt tokens that one step may compute beside the decodes.
  int prefill_tokens_max = 2048;
  // Plans made and not completed; 2 launches a step before the tokens of the one before it are read.
  int steps_in_flight_max = 2;
  // Batch sizes that a CUDA graph exists for, ascending.
  std::vector<int> decode_buckets;
  // Any of these ends an answer.
  std::vector<int32_t> stop_token_ids;
  // Token ids are below this.
  int32_t num_token_ids = 0;
  // Another one tests what happens when hashes collide.
  BlockHash block_hash = HashBlock;
};

// What became of one step.
struct StepOutcome {
  // In the order of the plan's samples; those of sequences that ended meanwhile are dropped.
  std::vector<AnswerToken> tokens;
  std::vector<FinishedAnswer> finished;
  // Requests that are gone because the logits of one of their sequences were no numbers.
  std::vector<int64_t> broken_request_ids;
};

struct PagedBatchStatus {
  int num_running = 0;
  int num_waiting = 0;
  int num_paused = 0;
  int num_free_pages = 0;
  int num_cached_pages = 0;
  // Counters since the start.
  int64_t num_tokens_decoded = 0;
  // Rows of prompts and recomputations.
  int64_t num_tokens_prefilled = 0;
  // Prompt tokens that were found in cached pages or computed once for several samples.
  int64_t num_tokens_reused = 0;
  // Sequences that gave their pages back for want of pages.
  int64_t num_preemptions = 0;
  // Sampled tokens whose sequence had ended before they were read.
  int64_t num_tokens_dropped = 0;
};

// Every call may come at any moment, also while steps are in flight, unless it says otherwise. What a sequence
// samples is a function of its tokens, its seed and the weights: preemption, pauses, sleep and the other
// requests change nothing of it, as far as the device computes a row alike in every batch and in chunks.
//
// A group's prompt is computed once for the samples that are admitted together. They refer to its full pages
// together; a sample that writes into its last, partly filled page while others refer to it gets a copy of it,
// by StepPlan::page_copies. Not thread-safe.
class PagedBatch {
 public:
  // INVALID_ARGUMENT naming the option, its value and the range. The weights of `policy_version` are loaded.
  static absl::StatusOr<std::unique_ptr<PagedBatch>> Create(const PagedBatchOptions& options,
                                                            uint64_t policy_version);

  // Queues a request. INVALID_ARGUMENT: an id that is in use, no seed, an empty prompt, a token id out of
  // range, an answer without a token, prompt and answer over context_tokens_max or over all pages.
  // RESOURCE_EXHAUSTED: over samples_max.
  absl::Status Submit(PagedRequest request);

  // Drops a request with all its answers; no outcome names it afterwards. Unknown ids are ignored.
  void Abort(int64_t request_id);

  // Ends one answer, of which the first `num_tokens` are kept: for stop strings, which the caller finds in the
  // text. Tokens in flight are dropped. NOT_FOUND: it has ended. INVALID_ARGUMENT: fewer tokens were read.
  absl::StatusOr<FinishedAnswer> FinishEarly(int64_t request_id, int sample_index, int num_tokens);

  // A paused request gets no rows. It keeps its pages until others need them; then it is computed again once
  // resumed. Tokens in flight still arrive, and may end its answers. Both may be repeated. NOT_FOUND: no such
  // request.
  absl::Status Pause(int64_t request_id);
  absl::Status Resume(int64_t request_id);

  // From now on no request starts. Those that have, with all their answers, go on until they end and the batch
  // is drained.
  void HoldNew() { new_requests_ = NewRequests::kHold; }
  void AdmitNew() { new_requests_ = NewRequests::kStart; }
  // No step is in flight, and no request has started: paused ones count.
  bool drained() const { return steps_in_flight_.empty() && !table_.any_started(); }

  // Plans made from now on use the weights of `policy_version`; each token is labelled with the version of the
  // plan that sampled it, so steps in flight keep theirs. Pages of the version before are never found as a
  // prefix again. FAILED_PRECONDITION: kRequireNone while not drained. INVALID_ARGUMENT: the version is in use.
  absl::Status ChangeWeights(uint64_t policy_version, EntriesOnChange entries);

  // Gives all pages back; no step is planned until Wake, and sequences are computed again then. Between the two
  // the device's memory may be used otherwise. Both may be repeated. FAILED_PRECONDITION: steps are in flight;
  // complete or drop them first.
  absl::Status Sleep();
  void Wake() { asleep_ = false; }
  bool asleep() const { return asleep_; }

  // The next step, in the memory of `reuse`. Empty when there is nothing to compute before the oldest step in
  // flight is completed or another call changes something; an empty plan is not to be launched or completed.
  // Every other one has to be launched, in order.
  StepPlan Plan(StepPlan reuse = {});

  // Takes the results of the oldest step in flight: as many as its plan has num_samples.
  StepOutcome Complete(absl::Span<const TokenResult> results);

  // After a device failed: its steps in flight never happened and its pages hold nothing. No request is lost: what
  // was computed is computed again, and what was sampled and not read is sampled again, the same.
  void DropSteps();

  int num_steps_in_flight() const { return static_cast<int>(steps_in_flight_.size()); }
  bool empty() const { return table_.num_requests() == 0; }
  uint64_t policy_version() const { return pool_.policy_version(); }
  PagedBatchStatus status() const;

  // INTERNAL unless pages, sequences, queues and steps agree. For tests; reads everything.
  absl::Status CheckInvariants() const;

 private:
  struct StepInFlight {
    uint64_t policy_version = 0;
    std::vector<int64_t> arrivals;  // of the sequence of each sample
  };

  PagedBatch(const PagedBatchOptions& options, uint64_t policy_version);

  void GiveBackAllPages();
  void TakeResult(PagedSequence* sequence, const TokenResult& result, uint64_t policy_version,
                  StepOutcome& outcome);
  FinishedAnswer Finish(PagedSequence* sequence, AnswerEnd end);
  bool IsStop(int32_t token_id) const;

  const PagedBatchOptions options_;
  PagePool pool_;
  SequenceTable table_;
  StepPlanner planner_;
  std::deque<StepInFlight> steps_in_flight_;
  uint64_t next_step_ = 0;
  bool asleep_ = false;
  NewRequests new_requests_ = NewRequests::kStart;
  int64_t num_tokens_decoded_ = 0;
  int64_t num_tokens_dropped_ = 0;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_BATCH_H_
