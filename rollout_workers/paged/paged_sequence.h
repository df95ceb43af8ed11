// One answer under way: its tokens, its pages, and how far it is.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_SEQUENCE_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rollout_workers/paged/page_pool.h"
#include "rollout_workers/paged/paged_request.h"
#include "rollout_workers/paged/step_plan.h"

namespace warpsmith::paged {

enum class SequenceState { kWaiting, kRunning, kPaused };

struct PagedSequence {
  // Order of submission, over all requests; also the sequence's name, for it is never given twice.
  int64_t arrival = 0;
  const PagedRequest* request = nullptr;
  int sample_index = 0;
  SequenceState state = SequenceState::kWaiting;
  // In [0, sequences_max) while it runs, else -1.
  int slot = -1;

  // The answer as far as its tokens were read, an element each; of top_tokens where the request wants some.
  std::vector<int32_t> answer;
  std::vector<float> log_probs;
  std::vector<uint64_t> policy_versions;
  std::vector<std::vector<TokenLogProb>> top_tokens;
  // Tokens that planned steps sample and that were not read yet.
  int num_in_flight = 0;

  // Positions whose keys and values are in `pages` once all planned steps have run. There are as many pages as
  // that takes, none spare.
  int num_computed = 0;
  std::vector<int32_t> pages;
  // The sibling that computes the prompt for this one, which has no pages meanwhile. Null: none does.
  PagedSequence* leader = nullptr;

  // The first `num_published` pages are the prefix `prefix`; kNoPrefix: no page is published any more, because
  // the hash of one was taken, or because weights changed and entries of the old ones are kept.
  int num_published = 0;
  PrefixId prefix = kEmptyPrefix;

  int num_prompt_tokens() const { return static_cast<int>(request->prompt_token_ids.size()); }
  int num_known() const { return num_prompt_tokens() + static_cast<int>(answer.size()); }
  // All tokens, those in flight included.
  int num_tokens() const { return num_known() + num_in_flight; }
  int num_answer_tokens() const { return num_tokens() - num_prompt_tokens(); }
  bool has_begun() const { return num_answer_tokens() > 0; }
  // Every token that it may have is there or in flight: it needs no further step.
  bool is_full() const { return num_answer_tokens() >= request->answer_tokens_max; }
  // Its last token is all that is not computed.
  bool is_decoding() const { return has_begun() && num_computed + 1 == num_tokens(); }
  // Positions that could be computed now.
  int num_wanted() const { return is_full() || leader != nullptr ? 0 : num_tokens() - num_computed; }
  // Of a known token.
  int32_t token_id(int position) const {
    return position < num_prompt_tokens() ? request->prompt_token_ids[position]
                                          : answer[position - num_prompt_tokens()];
  }
};

// Pages that hold `num_tokens`.
inline int NumPages(int num_tokens, int page_tokens) { return (num_tokens + page_tokens - 1) / page_tokens; }

// Full pages of known content that hold the beginning of `sequence`, as many as there are in a row; never all
// of its tokens, because the last one's logits are wanted. No reference is taken.
std::vector<int32_t> FindPrefixPages(const PagedSequence& sequence, const PagePool& pool);
// Takes a reference to each of `pages`, which FindPrefixPages found. The sequence has no pages yet.
void TakePrefixPages(const std::vector<int32_t>& pages, PagePool& pool, PagedSequence& sequence);

// Makes room for `num_tokens` more positions, which this step computes: allocates pages, and replaces the last
// one by a copy first if a sibling refers to it too and it is not full. Enough pages must be available.
void ExtendPages(int num_tokens, PagePool& pool, PagedSequence& sequence, std::vector<PageCopy>& page_copies);

// Gives `follower`, which has no pages, all that `leader` has computed.
void SharePages(const PagedSequence& leader, PagePool& pool, PagedSequence& follower);

// Publishes the pages that are full and whose tokens are known.
void PublishFullPages(PagePool& pool, PagedSequence& sequence);

// Gives all pages back. The sequence starts over: what it computes later is of one version again.
void ReleasePages(PagePool& pool, PagedSequence& sequence);

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGED_SEQUENCE_H_
