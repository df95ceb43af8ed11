// Which KV-cache page holds which block of which prefix.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_PREFIX_INDEX_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_PREFIX_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace warpsmith::paged {

// Names a prefix, a chain of full blocks under one policy version. Never given to another prefix, even after
// its page is gone.
using PrefixId = uint64_t;
inline constexpr PrefixId kEmptyPrefix = 0;
// No prefix: of a page whose content is not known.
inline constexpr PrefixId kNoPrefix = ~PrefixId{0};

// The tokens that fill one page, behind the prefix `parent`.
struct PrefixBlock {
  PrefixId parent = kEmptyPrefix;
  uint64_t policy_version = 0;
  absl::Span<const int32_t> token_ids;  // [page_tokens]
};

// A hash chains through `parent`. It only finds candidates, so it need not resist attacks.
using BlockHash = uint64_t (*)(const PrefixBlock& block);
uint64_t HashBlock(const PrefixBlock& block);

// Every hit is verified by parent, version and token ids: two prefixes whose hashes collide are never mixed;
// the second one is not indexed.
class PrefixIndex {
 public:
  PrefixIndex(int num_pages, int page_tokens, BlockHash hash);

  // The page that holds `block`, -1 if none does.
  int32_t Find(const PrefixBlock& block) const;
  // Of a page's content; kNoPrefix if it is not known.
  PrefixId id(int32_t page) const { return contents_[page].id; }

  // Says that `page`, whose content is not known yet, holds `block`. Returns the prefix that ends with the
  // block: of the page that holds the block already, if one does (then `page` stays unknown); kNoPrefix if
  // another block has this hash.
  PrefixId Insert(int32_t page, const PrefixBlock& block);
  // Forgets the content of `page`, known or not.
  void Erase(int32_t page);
  void Clear();

  int num_known() const { return static_cast<int>(page_of_hash_.size()); }

 private:
  struct Content {
    PrefixId id = kNoPrefix;
    PrefixId parent = kEmptyPrefix;
    uint64_t policy_version = 0;
    uint64_t hash = 0;
  };
  bool Holds(int32_t page, const PrefixBlock& block) const;

  const int page_tokens_;
  const BlockHash hash_;
  PrefixId last_id_ = kEmptyPrefix;
  std::vector<Content> contents_;   // [num_pages]
  std::vector<int32_t> token_ids_;  // [num_pages, page_tokens]
  absl::flat_hash_map<uint64_t, int32_t> page_of_hash_;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_PREFIX_INDEX_H_
