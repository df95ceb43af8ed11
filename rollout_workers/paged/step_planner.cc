#include "rollout_workers/paged/step_planner.h"

#include <algorithm>

#include "rollout_workers/paged/paged_sequence.h"
#include "rollout_workers/paged/prompt_sharing.h"
#include "rollout_workers/paged/step_builder.h"

namespace warpsmith::paged {

void StepPlanner::Plan(NewRequests new_requests, StepPlan& plan, std::vector<int64_t>& arrivals) {
  work_.clear();
  // A decision that only preempts made room for an admission, which the next one decides. Each has fewer
  // holders than the one before.
  for (bool again = true; again;) {
    const StepDecision decision = Decide(new_requests);
    again = decision.work.empty() && !decision.preempted_holders.empty();
    ApplyPreemptions(decision);
    for (const StepDecision::Work& work : decision.work) {
      work_.push_back({.sequence = running_[work.running], .num_tokens = work.num_tokens});
    }
    ApplyAdmissions(decision);
  }
  WriteDecodes(plan, arrivals);
  WriteChunks(plan, arrivals);
}

StepDecision StepPlanner::Decide(NewRequests new_requests) {
  running_ = table_.running();
  running_snapshots_.clear();
  for (const PagedSequence* const sequence : running_) {
    running_snapshots_.push_back({.num_computed = sequence->num_computed,
                                  .num_wanted = sequence->num_wanted(),
                                  .is_decoding = sequence->is_decoding(),
                                  .pages = sequence->pages});
  }
  holders_.assign(table_.holders().begin(), table_.holders().end());
  holder_snapshots_.clear();
  for (const PagedSequence* const sequence : holders_) holder_snapshots_.push_back(sequence->pages);
  candidates_ = CollectCandidates(table_, pool_, scheduler_.prefill_tokens_max(), new_requests);
  candidate_snapshots_.clear();
  for (AdmissionCandidate& candidate : candidates_) {
    const auto holder = std::find(holders_.begin(), holders_.end(), candidate.samples.front());
    if (holder != holders_.end()) candidate.snapshot.holder = static_cast<int>(holder - holders_.begin());
    candidate_snapshots_.push_back(candidate.snapshot);
  }
  return scheduler_.Decide({.running = running_snapshots_,
                            .holders = holder_snapshots_,
                            .candidates = candidate_snapshots_,
                            .ref_counts = pool_.ref_counts(),
                            .num_available_pages = pool_.num_available(),
                            .num_free_slots = table_.num_free_slots()});
}

void StepPlanner::ApplyPreemptions(const StepDecision& decision) {
  for (const int holder : decision.preempted_holders) Preempt(*holders_[holder], table_, pool_);
  for (const int index : decision.preempted_running) Preempt(*running_[index], table_, pool_);
  counters_.num_preemptions +=
      std::ssize(decision.preempted_holders) + std::ssize(decision.preempted_running);
}

void StepPlanner::ApplyAdmissions(const StepDecision& decision) {
  for (const StepDecision::Admission& admission : decision.admissions) {
    AdmissionCandidate& candidate = candidates_[admission.candidate];
    candidate.samples.resize(admission.num_samples);
    for (PagedSequence* const sequence : candidate.samples) table_.Move(sequence, SequenceState::kRunning);
    PagedSequence* const first = candidate.samples.front();
    table_.Find(first->request->id)->started = true;
    PagedSequence* const leader = candidate.leader != nullptr ? candidate.leader : first;
    for (PagedSequence* const sequence : candidate.samples) {
      if (sequence != leader) sequence->leader = leader;
    }
    if (candidate.leader != nullptr) continue;
    if (first->pages.empty()) TakePrefixPages(candidate.prefix_pages, pool_, *first);
    counters_.num_tokens_reused += std::ssize(candidate.prefix_pages) * pool_.page_tokens();
    work_.push_back({.sequence = first, .num_tokens = admission.num_tokens});
  }
}

void StepPlanner::WriteDecodes(StepPlan& plan, std::vector<int64_t>& arrivals) {
  const auto chunks = std::stable_partition(work_.begin(), work_.end(),
                                            [](const Work& work) { return work.sequence->is_decoding(); });
  plan.num_decodes = static_cast<int>(chunks - work_.begin());
  for (int i = 0; i < plan.num_decodes; ++i) {
    PagedSequence* const sequence = work_[i].sequence;
    ExtendPages(1, pool_, *sequence, plan.page_copies);
    AppendQuery(*sequence, 1, pool_.page_tokens(), plan);
    AppendSamples({&sequence, 1}, plan);
    arrivals.push_back(sequence->arrival);
    ++sequence->num_in_flight;
  }
}

void StepPlanner::WriteChunks(StepPlan& plan, std::vector<int64_t>& arrivals) {
  for (size_t i = plan.num_decodes; i < work_.size(); ++i) {
    const auto [sequence, num_tokens] = work_[i];
    ExtendPages(num_tokens, pool_, *sequence, plan.page_copies);
    PublishFullPages(pool_, *sequence);
    AppendQuery(*sequence, num_tokens, pool_.page_tokens(), plan);
    counters_.num_tokens_prefilled += num_tokens;
    if (sequence->num_computed < sequence->num_tokens()) continue;
    std::vector<PagedSequence*> samplers = FollowersOf(*sequence, table_);
    for (PagedSequence* const follower : samplers) {
      SharePages(*sequence, pool_, *follower);
      follower->leader = nullptr;
      counters_.num_tokens_reused += follower->num_computed;
    }
    samplers.insert(samplers.begin(), sequence);
    AppendSamples(samplers, plan);
    for (PagedSequence* const sampler : samplers) {
      arrivals.push_back(sampler->arrival);
      ++sampler->num_in_flight;
    }
  }
}

}  // namespace warpsmith::paged
