// Which lanes of each device serve: one whose referee does not start again leaves its work to the others.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_SERVING_LANES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_SERVING_LANES_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// Thread-safe.
class ServingLanes {
 public:
  // A lost lane is tried again every `pause`.
  explicit ServingLanes(absl::Duration pause) : pause_(pause) {}

  // One more lane, which serves.
  void Add(v1::Device device) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether lanes of this device serve beside one that does.
  bool OthersServe(v1::Device device) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes a lost lane out of service until `revive` says that it is there again; false where Close() comes before. The
  // last lane of a device stays, so that its requests are answered: true at once.
  bool Rest(v1::Device device, absl::FunctionRef<bool()> revive) ABSL_LOCKS_EXCLUDED(mutex_);

  int num_lost() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Duration pause_;
  mutable absl::Mutex mutex_;
  std::map<v1::Device, int> num_serving_ ABSL_GUARDED_BY(mutex_);
  int num_lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_SERVING_LANES_H_
