// The pages of a KV cache: how often each is referred to, and what those without a reference still hold.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGE_POOL_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGE_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rollout_workers/paged/prefix_index.h"

namespace warpsmith::paged {

// Never given to a sequence: the rows that pad a batch read and write it.
inline constexpr int32_t kPaddingPage = 0;

// A page is in one of three states: free; referenced, by as many sequences as its count says; or cached, which
// is: referenced by none, but known to hold a block of a prefix, so that it can be referenced again. Cached
// pages are given out like free ones, the least recently released first, when no free page is left.
//
// Only numbers live here: the keys and values are the device's. A page that is released while a step is in
// flight may be given out at once, because the device runs steps in the order of their plans. Not
// thread-safe.
class PagePool {
 public:
  // `num_pages` includes the padding page; at least 2.
  PagePool(int num_pages, int page_tokens, uint64_t policy_version, BlockHash hash = HashBlock);

  int num_pages() const { return static_cast<int>(ref_counts_.size()); }
  int page_tokens() const { return page_tokens_; }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_cached() const { return num_cached_; }
  // Pages that Allocate can give.
  int num_available() const { return num_free() + num_cached(); }
  absl::Span<const int32_t> ref_counts() const { return ref_counts_; }
  uint64_t policy_version() const { return policy_version_; }

  // A page with one reference and unknown content. There must be an available one.
  int32_t Allocate();
  // One more reference to a page that is referenced or cached.
  void Retain(int32_t page);
  // One reference less. A page without references becomes cached if its content is known, else free. Release
  // a sequence's pages from its end: then a prefix outlives what continues it.
  void Release(int32_t page);

  // The page that holds the block of `token_ids` behind `parent` under the present version, -1 if none does.
  int32_t FindBlock(PrefixId parent, absl::Span<const int32_t> token_ids) const;
  // Says what a referenced page holds, or will hold before any later step runs. See PrefixIndex::Insert.
  PrefixId Publish(int32_t page, PrefixId parent, absl::Span<const int32_t> token_ids);
  PrefixId prefix_id(int32_t page) const { return index_.id(page); }

  // Forgets what every page holds, and so frees the cached ones. What is published from now on is of
  // `policy_version`.
  void ForgetContents(uint64_t policy_version);

  // INTERNAL, with the page and the two counts, unless each page is referenced exactly `expected` [num_pages]
  // times, and each page without references is free once or cached once. For tests; reads every page.
  absl::Status CheckInvariants(absl::Span<const int32_t> expected) const;

 private:
  void PushNewest(int32_t page);
  void Unlink(int32_t page);

  const int page_tokens_;
  uint64_t policy_version_;
  std::vector<int32_t> ref_counts_;  // [num_pages]
  std::vector<int32_t> free_;
  PrefixIndex index_;
  // Cached pages in a ring from least to most recently released. Its ends meet in the padding page, which is
  // never cached.
  std::vector<int32_t> newer_;  // [num_pages]
  std::vector<int32_t> older_;  // [num_pages]
  int num_cached_ = 0;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PAGE_POOL_H_
