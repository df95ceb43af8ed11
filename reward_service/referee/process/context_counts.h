// How many processes were made that open a GPU, by what they were made for: for the log alone.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CONTEXT_COUNTS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CONTEXT_COUNTS_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace warpsmith {

// What a process is made for. The driver opens a GPU for one process at a time, so each one makes others wait.
enum class ContextFor {
  kOther,  // what the referee measures the path with
  kOracle,
  kReference,  // the task's baselines, in whatever form
  kVerified,
  kTimed,
  kRecorded,
  kSpare,   // made ahead, and counted again when it is handed out
  kUnused,  // a spare that was thrown away, or did not start
};
inline constexpr size_t kNumContextsFor = 8;

// Thread-safe.
class ContextCounts {
 public:
  void Add(ContextFor what) ABSL_LOCKS_EXCLUDED(mutex_);
  // What was counted since the last report: "oracle 3, verified 5, spare 4"; empty where nothing was.
  std::string TakeReport() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::array<int, kNumContextsFor> counts_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CONTEXT_COUNTS_H_
