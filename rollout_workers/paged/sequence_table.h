// All requests and sequences of a PagedBatch, and which of them run, wait or are paused.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_SEQUENCE_TABLE_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_SEQUENCE_TABLE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "rollout_workers/paged/paged_sequence.h"

namespace warpsmith::paged {

struct ByArrival {
  bool operator()(const PagedSequence* a, const PagedSequence* b) const { return a->arrival < b->arrival; }
};
using SequenceSet = std::set<PagedSequence*, ByArrival>;

// A request and those of its answers that have not ended.
struct RequestEntry {
  PagedRequest request;
  bool paused = false;
  // One of its answers had a slot once.
  bool started = false;
  std::vector<std::unique_ptr<PagedSequence>> samples;  // by index; null: ended
  int num_left = 0;
};

// Order of arrival is the order of everything. Pointers to sequences are valid until they are removed.
class SequenceTable {
 public:
  explicit SequenceTable(int num_slots);

  // Null if there is none of that id.
  RequestEntry* Find(int64_t request_id);
  const RequestEntry* Find(int64_t request_id) const;
  // Adds a request of a new id; its sequences wait.
  void Add(PagedRequest request);
  // Of a sequence that is still there; null otherwise.
  PagedSequence* FindSequence(int64_t arrival);
  // Ends a sequence, and its request with the last one. It has given its pages back.
  void Remove(PagedSequence* sequence);

  // Changes the state. To run, a free slot is needed; other states give the slot back. To be called with the
  // present state too, when what decides on a sequence's queue has changed: its pages, or whether it has begun.
  void Move(PagedSequence* sequence, SequenceState state);

  // With a slot, oldest first.
  const std::vector<PagedSequence*>& running() const { return running_; }
  // Waiting, with a token sampled already: these are served first.
  const SequenceSet& returning() const { return returning_; }
  // Waiting, without one.
  const SequenceSet& fresh() const { return fresh_; }
  // Without a slot, with pages.
  const SequenceSet& holders() const { return holders_; }

  int num_sequences() const { return static_cast<int>(sequences_.size()); }
  bool any_started() const;
  int num_requests() const { return static_cast<int>(requests_.size()); }
  int num_free_slots() const { return static_cast<int>(free_slots_.size()); }
  // All, oldest first.
  std::vector<PagedSequence*> sequences() const;

 private:
  void LeaveQueues(PagedSequence* sequence);

  int64_t last_arrival_ = 0;
  absl::flat_hash_map<int64_t, std::unique_ptr<RequestEntry>> requests_;
  absl::flat_hash_map<int64_t, PagedSequence*> sequences_;  // by arrival
  std::vector<int> free_slots_;
  std::vector<PagedSequence*> running_;
  SequenceSet returning_, fresh_, holders_;
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_SEQUENCE_TABLE_H_
