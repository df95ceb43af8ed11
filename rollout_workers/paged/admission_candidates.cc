#include "rollout_workers/paged/admission_candidates.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "rollout_workers/paged/prompt_sharing.h"

namespace warpsmith::paged {
namespace {

class Collector {
 public:
  Collector(const SequenceTable& table, const PagePool& pool, int prefill_tokens_max,
            NewRequests new_requests)
      : table_(table), pool_(pool), prefill_tokens_max_(prefill_tokens_max), new_requests_(new_requests) {}

  std::vector<AdmissionCandidate> Collect() && {
    if (TakeFrom(table_.returning())) TakeFrom(table_.fresh());
    return std::move(candidates_);
  }

 private:
  // Whether there is room for more behind the whole queue.
  bool TakeFrom(const SequenceSet& queue);
  bool JoinsLast(const PagedSequence& sequence) const;
  bool IsEnough() const;
  void ContinuePages(AdmissionCandidate& candidate) const;
  // False: the sequence would compute a page that one before it computes.
  bool FindPages(AdmissionCandidate& candidate);

  const SequenceTable& table_;
  const PagePool& pool_;
  const int prefill_tokens_max_;
  const NewRequests new_requests_;
  std::vector<AdmissionCandidate> candidates_;
  // What they would take.
  int num_samples_ = 0;
  int num_pages_ = 0;
  int num_tokens_ = 0;
  int num_searches_ = 0;
  const PagedRequest* passed_over_ = nullptr;
  absl::flat_hash_set<uint64_t> next_pages_;  // hashes of those that they would compute first
};

bool Collector::TakeFrom(const SequenceSet& queue) {
  for (PagedSequence* const sequence : queue) {
    if (num_samples_ >= table_.num_free_slots() || sequence->num_in_flight > 0) return false;
    const RequestEntry& request = *table_.Find(sequence->request->id);
    if (new_requests_ == NewRequests::kHold && !request.started) continue;
    if (!sequence->has_begun() && sequence->request == passed_over_) continue;
    if (JoinsLast(*sequence)) {
      candidates_.back().samples.push_back(sequence);
      candidates_.back().snapshot.num_samples = static_cast<int>(candidates_.back().samples.size());
      ++num_samples_;
      continue;
    }
    if (IsEnough()) return false;
    AdmissionCandidate candidate{.samples = {sequence}};
    candidate.snapshot.num_wanted = sequence->num_tokens() - sequence->num_computed;
    if (sequence->pages.empty() && !sequence->has_begun()) candidate.leader = FindLeader(request);
    candidate.snapshot.joins_sibling = candidate.leader != nullptr;
    if (!sequence->pages.empty()) {
      ContinuePages(candidate);
    } else if (candidate.leader == nullptr) {
      if (++num_searches_ > kPrefixSearchesMax) return false;
      if (!FindPages(candidate)) {
        if (!sequence->has_begun()) passed_over_ = sequence->request;  // and with it its siblings
        continue;
      }
    }
    num_pages_ += candidate.snapshot.num_pages;
    if (candidate.leader == nullptr) num_tokens_ += candidate.snapshot.num_wanted;
    candidates_.push_back(std::move(candidate));
    ++num_samples_;
  }
  return true;
}

bool Collector::JoinsLast(const PagedSequence& sequence) const {
  if (candidates_.empty() || sequence.has_begun() || !sequence.pages.empty()) return false;
  const PagedSequence& last = *candidates_.back().samples.back();
  return last.request == sequence.request && !last.has_begun();
}

bool Collector::IsEnough() const {
  return num_pages_ > pool_.num_available() || num_tokens_ > prefill_tokens_max_;
}

void Collector::ContinuePages(AdmissionCandidate& candidate) const {
  const PagedSequence& sequence = *candidate.samples.front();
  const bool copies =
      sequence.num_computed % pool_.page_tokens() > 0 && pool_.ref_counts()[sequence.pages.back()] > 1;
  candidate.snapshot.num_pages = NumPages(sequence.num_tokens(), pool_.page_tokens()) -
                                 static_cast<int>(sequence.pages.size()) + (copies ? 1 : 0);
}

bool Collector::FindPages(AdmissionCandidate& candidate) {
  const PagedSequence& sequence = *candidate.samples.front();
  candidate.prefix_pages = FindPrefixPages(sequence, pool_);
  const std::vector<int32_t>& pages = candidate.prefix_pages;
  const auto num_found = static_cast<int>(pages.size());
  const auto num_cached =
      std::count_if(pages.begin(), pages.end(), [&](int32_t page) { return pool_.ref_counts()[page] == 0; });
  candidate.snapshot.num_pages =
      NumPages(sequence.num_tokens(), pool_.page_tokens()) - num_found + static_cast<int>(num_cached);
  candidate.snapshot.num_wanted -= num_found * pool_.page_tokens();
  if (candidate.snapshot.num_wanted <= pool_.page_tokens()) return true;
  // A hash is enough: where two collide, one of them waits for a step that it need not wait.
  std::vector<int32_t> next_page(pool_.page_tokens());
  for (int i = 0; i < pool_.page_tokens(); ++i) {
    next_page[i] = sequence.token_id(num_found * pool_.page_tokens() + i);
  }
  const PrefixId prefix = pages.empty() ? kEmptyPrefix : pool_.prefix_id(pages.back());
  return next_pages_.insert(HashBlock({.parent = prefix, .token_ids = next_page})).second;
}

}  // namespace

std::vector<AdmissionCandidate> CollectCandidates(const SequenceTable& table, const PagePool& pool,
                                                  int prefill_tokens_max, NewRequests new_requests) {
  return Collector(table, pool, prefill_tokens_max, new_requests).Collect();
}

}  // namespace warpsmith::paged
