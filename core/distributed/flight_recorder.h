// The last collectives of a process, so that a hang explains itself.
#ifndef WARPSMITH_CORE_DISTRIBUTED_FLIGHT_RECORDER_H_
#define WARPSMITH_CORE_DISTRIBUTED_FLIGHT_RECORDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace warpsmith {

// One collective as seen by this rank.
struct CollectiveRecord {
  int64_t sequence = 0;   // position in this rank's order of collectives, from 0
  std::string operation;  // "all_reduce", "broadcast", "all_gather", "barrier"
  std::string name;       // what is communicated, e.g. "gradient"
  std::string phase;      // what the caller was doing, e.g. "update"
  int64_t num_bytes = 0;
  absl::Time start;
  absl::Time end = absl::InfiniteFuture();  // infinite while it runs
  bool failed = false;
};

// A ring of the most recent records. Thread-safe.
class FlightRecorder {
 public:
  explicit FlightRecorder(size_t capacity);

  // Notes the start of a collective and returns a copy of its record.
  CollectiveRecord Begin(std::string_view operation, std::string_view name, std::string_view phase,
                         int64_t num_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(int64_t sequence, bool failed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Oldest first, at most `capacity`.
  std::vector<CollectiveRecord> Records() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The records as lines of text, the running one last.
  std::string Report() const;

 private:
  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::vector<CollectiveRecord> ring_ ABSL_GUARDED_BY(mutex_);  // record s lies at s % capacity_
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

// "all_reduce "gradient" (#12, phase update, 3072000 bytes)".
std::string DescribeCollective(const CollectiveRecord& record);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_FLIGHT_RECORDER_H_
