#include "rollout_workers/paged/page_pool.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace warpsmith::paged {

PagePool::PagePool(int num_pages, int page_tokens, uint64_t policy_version, BlockHash hash)
    : page_tokens_(page_tokens),
      policy_version_(policy_version),
      ref_counts_(num_pages),
      index_(num_pages, page_tokens, hash),
      newer_(num_pages),
      older_(num_pages) {
  WS_CHECK(num_pages >= 2) << num_pages << " pages are none beside the padding page";
  free_.reserve(num_pages);
  for (int32_t page = num_pages - 1; page > kPaddingPage; --page) free_.push_back(page);
}

int32_t PagePool::Allocate() {
  WS_CHECK(num_available() > 0) << "all " << num_pages() - 1 << " pages are referenced";
  int32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = newer_[kPaddingPage];
    Unlink(page);
    index_.Erase(page);
  }
  ref_counts_[page] = 1;
  return page;
}

void PagePool::Retain(int32_t page) {
  if (ref_counts_[page] == 0) {
    WS_CHECK(index_.id(page) != kNoPrefix) << "page " << page << " is free";
    Unlink(page);
  }
  ++ref_counts_[page];
}

void PagePool::Release(int32_t page) {
  WS_CHECK(ref_counts_[page] > 0) << "page " << page << " is referenced by nobody";
  if (--ref_counts_[page] > 0) return;
  if (index_.id(page) != kNoPrefix) {
    PushNewest(page);
  } else {
    free_.push_back(page);
  }
}

int32_t PagePool::FindBlock(PrefixId parent, absl::Span<const int32_t> token_ids) const {
  return index_.Find({.parent = parent, .policy_version = policy_version_, .token_ids = token_ids});
}

PrefixId PagePool::Publish(int32_t page, PrefixId parent, absl::Span<const int32_t> token_ids) {
  WS_CHECK(ref_counts_[page] > 0) << "page " << page << " is referenced by nobody";
  return index_.Insert(page, {.parent = parent, .policy_version = policy_version_, .token_ids = token_ids});
}

void PagePool::ForgetContents(uint64_t policy_version) {
  index_.Clear();
  while (num_cached_ > 0) {
    const int32_t page = newer_[kPaddingPage];
    Unlink(page);
    free_.push_back(page);
  }
  policy_version_ = policy_version;
}

void PagePool::PushNewest(int32_t page) {
  const int32_t last = older_[kPaddingPage];
  newer_[last] = older_[kPaddingPage] = page;
  older_[page] = last;
  newer_[page] = kPaddingPage;
  ++num_cached_;
}

void PagePool::Unlink(int32_t page) {
  newer_[older_[page]] = newer_[page];
  older_[newer_[page]] = older_[page];
  --num_cached_;
}

absl::Status PagePool::CheckInvariants(absl::Span<const int32_t> expected) const {
  std::vector<int> times_unreferenced(num_pages());  // in free_ or in the ring
  for (const int32_t page : free_) {
    ++times_unreferenced[page];
    if (index_.id(page) != kNoPrefix) {
      return absl::InternalError(absl::StrCat("Page ", page, " is free and has a known content"));
    }
  }
  int num_linked = 0;
  for (int32_t page = newer_[kPaddingPage]; page != kPaddingPage; page = newer_[page]) {
    if (++num_linked > num_cached_) break;
    ++times_unreferenced[page];
    if (index_.id(page) == kNoPrefix) {
      return absl::InternalError(absl::StrCat("Page ", page, " is cached and has no known content"));
    }
  }
  if (num_linked != num_cached_) {
    return absl::InternalError(absl::StrCat(num_cached_, " pages are cached and ", num_linked, " linked"));
  }
  for (int32_t page = kPaddingPage + 1; page < num_pages(); ++page) {
    if (ref_counts_[page] != expected[page]) {
      return absl::InternalError(absl::StrCat("Page ", page, " counts ", ref_counts_[page],
                                              " references where ", expected[page], " are held"));
    }
    const int times_expected = ref_counts_[page] == 0 ? 1 : 0;
    if (times_unreferenced[page] != times_expected) {
      return absl::InternalError(absl::StrCat("Page ", page, " with ", ref_counts_[page], " references is ",
                                              times_unreferenced[page], " times free or cached"));
    }
  }
  return absl::OkStatus();
}

}  // namespace warpsmith::paged
