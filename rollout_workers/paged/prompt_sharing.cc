#include "rollout_workers/paged/prompt_sharing.h"

#include <algorithm>
#include <utility>

namespace warpsmith::paged {

PagedSequence* FindLeader(const RequestEntry& request) {
  const auto leader = std::find_if(request.samples.begin(), request.samples.end(), [](const auto& sample) {
    return sample != nullptr && sample->state == SequenceState::kRunning && sample->leader == nullptr &&
           !sample->has_begun();
  });
  return leader == request.samples.end() ? nullptr : leader->get();
}

std::vector<PagedSequence*> FollowersOf(const PagedSequence& leader, SequenceTable& table) {
  std::vector<PagedSequence*> followers;
  for (const auto& sample : table.Find(leader.request->id)->samples) {
    if (sample != nullptr && sample->leader == &leader) followers.push_back(sample.get());
  }
  return followers;
}

void HandOverPrompt(PagedSequence& leader, SequenceTable& table) {
  const std::vector<PagedSequence*> followers = FollowersOf(leader, table);
  if (followers.empty()) return;
  PagedSequence* const heir = followers.front();
  heir->pages = std::exchange(leader.pages, {});
  heir->num_computed = std::exchange(leader.num_computed, 0);
  heir->num_published = std::exchange(leader.num_published, 0);
  heir->prefix = std::exchange(leader.prefix, kEmptyPrefix);
  heir->leader = nullptr;
  for (PagedSequence* const follower : followers) {
    if (follower != heir) follower->leader = heir;
  }
}

void Preempt(PagedSequence& sequence, SequenceTable& table, PagePool& pool) {
  for (PagedSequence* const follower : FollowersOf(sequence, table)) {
    follower->leader = nullptr;
    table.Move(follower, SequenceState::kWaiting);
  }
  ReleasePages(pool, sequence);
  const bool ran = sequence.state == SequenceState::kRunning;
  table.Move(&sequence, ran ? SequenceState::kWaiting : sequence.state);
}

}  // namespace warpsmith::paged
