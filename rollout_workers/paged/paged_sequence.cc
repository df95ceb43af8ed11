#include "rollout_workers/paged/paged_sequence.h"

#include <algorithm>

#include "core/base/check.h"

namespace warpsmith::paged {
namespace {

// The tokens of page `index` of the sequence, all of them known: in place where the prompt has them all, else in
// `scratch`.
absl::Span<const int32_t> BlockTokens(const PagedSequence& sequence, int index, int page_tokens,
                                      std::vector<int32_t>& scratch) {
  const int begin = index * page_tokens;
  const absl::Span<const int32_t> prompt = sequence.request->prompt_token_ids;
  if (begin + page_tokens <= std::ssize(prompt)) return prompt.subspan(begin, page_tokens);
  scratch.resize(page_tokens);
  for (int i = 0; i < page_tokens; ++i) scratch[i] = sequence.token_id(begin + i);
  return scratch;
}

}  // namespace

std::vector<int32_t> FindPrefixPages(const PagedSequence& sequence, const PagePool& pool) {
  std::vector<int32_t> pages, scratch;
  PrefixId prefix = kEmptyPrefix;
  const int num_full = (sequence.num_known() - 1) / pool.page_tokens();
  while (std::ssize(pages) < num_full) {
    const int index = static_cast<int>(pages.size());
    const int32_t page = pool.FindBlock(prefix, BlockTokens(sequence, index, pool.page_tokens(), scratch));
    if (page < 0) break;
    prefix = pool.prefix_id(page);
    pages.push_back(page);
  }
  return pages;
}

void TakePrefixPages(const std::vector<int32_t>& pages, PagePool& pool, PagedSequence& sequence) {
  WS_CHECK(sequence.pages.empty()) << "the sequence has " << sequence.pages.size() << " pages already";
  if (pages.empty()) return;
  for (const int32_t page : pages) pool.Retain(page);
  sequence.pages = pages;
  sequence.num_published = static_cast<int>(pages.size());
  sequence.num_computed = sequence.num_published * pool.page_tokens();
  sequence.prefix = pool.prefix_id(pages.back());
}

void ExtendPages(int num_tokens, PagePool& pool, PagedSequence& sequence,
                 std::vector<PageCopy>& page_copies) {
  if (const int filled = sequence.num_computed % pool.page_tokens(); filled > 0) {
    int32_t& last = sequence.pages.back();
    if (pool.ref_counts()[last] > 1) {
      const int32_t own = pool.Allocate();
      page_copies.push_back({.source = last, .destination = own, .num_tokens = filled});
      pool.Release(last);
      last = own;
    }
  }
  sequence.num_computed += num_tokens;
  const int num_pages = NumPages(sequence.num_computed, pool.page_tokens());
  while (std::ssize(sequence.pages) < num_pages) sequence.pages.push_back(pool.Allocate());
}

void SharePages(const PagedSequence& leader, PagePool& pool, PagedSequence& follower) {
  WS_CHECK(follower.pages.empty()) << "the sequence has " << follower.pages.size() << " pages already";
  for (const int32_t page : leader.pages) pool.Retain(page);
  follower.pages = leader.pages;
  follower.num_computed = leader.num_computed;
  follower.num_published = leader.num_published;
  follower.prefix = leader.prefix;
}

void PublishFullPages(PagePool& pool, PagedSequence& sequence) {
  const int num_full = std::min(sequence.num_computed, sequence.num_known()) / pool.page_tokens();
  std::vector<int32_t> scratch;
  while (sequence.num_published < num_full && sequence.prefix != kNoPrefix) {
    const int index = sequence.num_published;
    const int32_t page = sequence.pages[index];
    // Siblings that share the page publish it once; the others find it published.
    const PrefixId known = pool.prefix_id(page);
    sequence.prefix =
        known != kNoPrefix
            ? known
            : pool.Publish(page, sequence.prefix, BlockTokens(sequence, index, pool.page_tokens(), scratch));
    if (sequence.prefix != kNoPrefix) ++sequence.num_published;
  }
}

void ReleasePages(PagePool& pool, PagedSequence& sequence) {
  std::for_each(sequence.pages.rbegin(), sequence.pages.rend(), [&](int32_t page) { pool.Release(page); });
  sequence.pages.clear();
  sequence.num_computed = 0;
  sequence.num_published = 0;
  sequence.prefix = kEmptyPrefix;
}

}  // namespace warpsmith::paged
