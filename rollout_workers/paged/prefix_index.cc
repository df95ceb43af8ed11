#include "rollout_workers/paged/prefix_index.h"

#include <algorithm>

#include "core/base/check.h"

namespace warpsmith::paged {
namespace {

// The finaliser of MurmurHash3 (public domain, Appleby): every bit of the input reaches every bit of the output.
uint64_t Mix(uint64_t word) {
  word = (word ^ (word >> 33)) * 0xff51afd7ed558ccd;
  word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53;
  return word ^ (word >> 33);
}

}  // namespace

uint64_t HashBlock(const PrefixBlock& block) {
  uint64_t hash = Mix(block.parent + 0x9e3779b97f4a7c15) ^ Mix(block.policy_version);
  const absl::Span<const int32_t> ids = block.token_ids;
  size_t i = 0;
  for (; i + 1 < ids.size(); i += 2) {
    hash =
        Mix(hash + ((uint64_t{static_cast<uint32_t>(ids[i])} << 32) | static_cast<uint32_t>(ids[i + 1])) + 1);
  }
  if (i < ids.size()) hash = Mix(hash + static_cast<uint32_t>(ids[i]) + 1);
  return hash;
}

PrefixIndex::PrefixIndex(int num_pages, int page_tokens, BlockHash hash)
    : page_tokens_(page_tokens),
      hash_(hash),
      contents_(num_pages),
      token_ids_(static_cast<size_t>(num_pages) * page_tokens) {
  page_of_hash_.reserve(num_pages);
}

bool PrefixIndex::Holds(int32_t page, const PrefixBlock& block) const {
  const Content& content = contents_[page];
  return content.id != kNoPrefix && content.parent == block.parent &&
         content.policy_version == block.policy_version &&
         std::equal(block.token_ids.begin(), block.token_ids.end(),
                    token_ids_.begin() + int64_t{page} * page_tokens_);
}

int32_t PrefixIndex::Find(const PrefixBlock& block) const {
  const auto found = page_of_hash_.find(hash_(block));
  return found != page_of_hash_.end() && Holds(found->second, block) ? found->second : -1;
}

PrefixId PrefixIndex::Insert(int32_t page, const PrefixBlock& block) {
  WS_CHECK(std::ssize(block.token_ids) == page_tokens_) << block.token_ids.size() << " tokens are no block";
  WS_CHECK(id(page) == kNoPrefix) << "page " << page << " holds another block";
  const uint64_t hash = hash_(block);
  const auto [entry, inserted] = page_of_hash_.try_emplace(hash, page);
  if (!inserted) return Holds(entry->second, block) ? id(entry->second) : kNoPrefix;
  contents_[page] = {
      .id = ++last_id_, .parent = block.parent, .policy_version = block.policy_version, .hash = hash};
  std::copy(block.token_ids.begin(), block.token_ids.end(),
            token_ids_.begin() + int64_t{page} * page_tokens_);
  return last_id_;
}

void PrefixIndex::Erase(int32_t page) {
  if (id(page) == kNoPrefix) return;
  page_of_hash_.erase(contents_[page].hash);
  contents_[page] = {};
}

void PrefixIndex::Clear() {
  page_of_hash_.clear();
  std::fill(contents_.begin(), contents_.end(), Content{});
}

}  // namespace warpsmith::paged
