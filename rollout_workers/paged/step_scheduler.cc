#include "rollout_workers/paged/step_scheduler.h"

#include <algorithm>
#include <utility>

namespace warpsmith::paged {

StepDecision StepScheduler::Decide(const StepSnapshot& snapshot) {
  snapshot_ = &snapshot;
  decision_ = {};
  num_available_ = snapshot.num_available_pages;
  prefill_tokens_left_ = prefill_tokens_max_;
  num_running_ = static_cast<int>(snapshot.running.size());
  num_free_slots_ = snapshot.num_free_slots;
  next_holder_ = static_cast<int>(snapshot.holders.size());
  next_running_ = num_running_;
  changes_.resize(snapshot.ref_counts.size());

  for (int i = 0; i < next_running_; ++i) Serve(i);
  if (decision_.preempted_holders.empty() && decision_.preempted_running.empty()) AdmitCandidates();

  for (const int32_t page : changed_pages_) changes_[page] = 0;
  changed_pages_.clear();
  snapshot_ = nullptr;
  return std::exchange(decision_, {});
}

void StepScheduler::Serve(int index) {
  const RunningSnapshot& sequence = snapshot_->running[index];
  int num_tokens = sequence.num_wanted;
  if (!sequence.is_decoding) num_tokens = std::min(num_tokens, prefill_tokens_left_);
  if (num_tokens > 0) {
    while (PagesNeeded(sequence, num_tokens) > num_available_ && PreemptFor(index)) {
    }
    num_tokens = TokensThatFit(sequence, num_tokens);
  }
  if (num_tokens == 0) return;
  num_available_ -= PagesNeeded(sequence, num_tokens);
  // The writer of a shared page takes a copy and leaves the page to its siblings.
  const bool writes_last = sequence.num_computed % page_tokens_ > 0;
  if (writes_last && RefCount(sequence.pages.back()) > 1) ChangeRefCount(sequence.pages.back(), -1);
  if (!sequence.is_decoding) prefill_tokens_left_ -= num_tokens;
  decision_.work.push_back({.running = index, .num_tokens = num_tokens});
}

int StepScheduler::PagesNeeded(const RunningSnapshot& sequence, int num_tokens) const {
  const int num_pages = (sequence.num_computed + num_tokens + page_tokens_ - 1) / page_tokens_;
  const bool writes_last = sequence.num_computed % page_tokens_ > 0;
  const int num_copies = writes_last && RefCount(sequence.pages.back()) > 1 ? 1 : 0;
  return num_pages - static_cast<int>(sequence.pages.size()) + num_copies;
}

int StepScheduler::TokensThatFit(const RunningSnapshot& sequence, int num_tokens) const {
  const int missing = PagesNeeded(sequence, num_tokens) - num_available_;
  if (missing <= 0) return num_tokens;
  // Without its last `missing` pages.
  const int num_pages = (sequence.num_computed + num_tokens + page_tokens_ - 1) / page_tokens_ - missing;
  const int num_fit = num_pages * page_tokens_ - sequence.num_computed;
  return num_fit > 0 && PagesNeeded(sequence, num_fit) <= num_available_ ? num_fit : 0;
}

bool StepScheduler::PreemptFor(int index) {
  if (next_holder_ > 0) {
    --next_holder_;
    decision_.preempted_holders.push_back(next_holder_);
    ReleasePages(snapshot_->holders[next_holder_]);
    return true;
  }
  while (next_running_ > index + 1) {
    const absl::Span<const int32_t> pages = snapshot_->running[--next_running_].pages;
    if (pages.empty()) continue;  // it waits for a sibling, with which it shares its fate
    decision_.preempted_running.push_back(next_running_);
    --num_running_;
    ReleasePages(pages);
    return true;
  }
  return false;
}

void StepScheduler::ReleasePages(absl::Span<const int32_t> pages) {
  for (const int32_t page : pages) {
    ChangeRefCount(page, -1);
    if (RefCount(page) == 0) ++num_available_;
  }
}

void StepScheduler::ChangeRefCount(int32_t page, int change) {
  changes_[page] += change;
  changed_pages_.push_back(page);
}

void StepScheduler::AdmitCandidates() {
  for (int i = 0; i < std::ssize(snapshot_->candidates); ++i) {
    const CandidateSnapshot& candidate = snapshot_->candidates[i];
    if (num_free_slots_ == 0) return;
    if (!candidate.joins_sibling && prefill_tokens_left_ == 0) return;
    const int num_samples = NumAdmitted(candidate);
    if (num_samples == 0) {
      if (num_running_ == 0) FreePagesFor(candidate);
      return;
    }
    const int num_tokens = candidate.joins_sibling ? 0 : std::min(candidate.num_wanted, prefill_tokens_left_);
    decision_.admissions.push_back({.candidate = i, .num_samples = num_samples, .num_tokens = num_tokens});
    num_free_slots_ -= num_samples;
    num_running_ += num_samples;
    prefill_tokens_left_ -= num_tokens;
    num_available_ -= candidate.num_pages;
  }
}

int StepScheduler::NumAdmitted(const CandidateSnapshot& candidate) const {
  const int num_left = num_available_ - candidate.num_pages;
  const int num_most = std::min(candidate.num_samples, num_free_slots_);
  if (num_left >= num_running_ + 1) return std::min(num_most, num_left - num_running_);
  return num_running_ == 0 && num_left >= 0 ? 1 : 0;
}

void StepScheduler::FreePagesFor(const CandidateSnapshot& candidate) {
  while (num_available_ < candidate.num_pages && next_holder_ > 0) {
    if (--next_holder_ == candidate.holder) continue;
    decision_.preempted_holders.push_back(next_holder_);
    ReleasePages(snapshot_->holders[next_holder_]);
  }
}

}  // namespace warpsmith::paged
