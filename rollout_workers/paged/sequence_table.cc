#include "rollout_workers/paged/sequence_table.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace warpsmith::paged {

SequenceTable::SequenceTable(int num_slots) {
  for (int slot = num_slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

RequestEntry* SequenceTable::Find(int64_t request_id) {
  const auto found = requests_.find(request_id);
  return found == requests_.end() ? nullptr : found->second.get();
}

const RequestEntry* SequenceTable::Find(int64_t request_id) const {
  const auto found = requests_.find(request_id);
  return found == requests_.end() ? nullptr : found->second.get();
}

PagedSequence* SequenceTable::FindSequence(int64_t arrival) {
  const auto found = sequences_.find(arrival);
  return found == sequences_.end() ? nullptr : found->second;
}

void SequenceTable::Add(PagedRequest request) {
  auto entry = std::make_unique<RequestEntry>();
  entry->request = std::move(request);
  entry->num_left = static_cast<int>(entry->request.seeds.size());
  for (int i = 0; i < entry->num_left; ++i) {
    auto sequence = std::make_unique<PagedSequence>();
    sequence->arrival = ++last_arrival_;
    sequence->request = &entry->request;
    sequence->sample_index = i;
    sequences_[sequence->arrival] = sequence.get();
    fresh_.insert(sequence.get());
    entry->samples.push_back(std::move(sequence));
  }
  const int64_t id = entry->request.id;
  const bool added = requests_.try_emplace(id, std::move(entry)).second;
  WS_CHECK(added) << "request " << id << " is there already";
}

void SequenceTable::Remove(PagedSequence* sequence) {
  WS_CHECK(sequence->pages.empty()) << sequence->pages.size() << " pages would be lost";
  LeaveQueues(sequence);
  sequences_.erase(sequence->arrival);
  const int64_t request_id = sequence->request->id;
  RequestEntry& entry = *Find(request_id);
  entry.samples[sequence->sample_index].reset();
  if (--entry.num_left == 0) requests_.erase(request_id);
}

void SequenceTable::Move(PagedSequence* sequence, SequenceState state) {
  if (state == SequenceState::kRunning && sequence->state == state) return;
  LeaveQueues(sequence);
  sequence->state = state;
  if (state == SequenceState::kRunning) {
    WS_CHECK(!free_slots_.empty()) << "all slots are taken";
    sequence->slot = free_slots_.back();
    free_slots_.pop_back();
    running_.insert(std::upper_bound(running_.begin(), running_.end(), sequence, ByArrival()), sequence);
    return;
  }
  if (!sequence->pages.empty()) holders_.insert(sequence);
  if (state == SequenceState::kWaiting) (sequence->has_begun() ? returning_ : fresh_).insert(sequence);
}

void SequenceTable::LeaveQueues(PagedSequence* sequence) {
  if (sequence->state == SequenceState::kRunning) {
    running_.erase(std::lower_bound(running_.begin(), running_.end(), sequence, ByArrival()));
    free_slots_.push_back(std::exchange(sequence->slot, -1));
    return;
  }
  holders_.erase(sequence);
  returning_.erase(sequence);
  fresh_.erase(sequence);
}

bool SequenceTable::any_started() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const auto& request) { return request.second->started; });
}

std::vector<PagedSequence*> SequenceTable::sequences() const {
  std::vector<PagedSequence*> all;
  all.reserve(sequences_.size());
  for (const auto& [arrival, sequence] : sequences_) all.push_back(sequence);
  std::sort(all.begin(), all.end(), ByArrival());
  return all;
}

}  // namespace warpsmith::paged
