// A handle that one thread uses and another may abort.
#ifndef WARPSMITH_CORE_DISTRIBUTED_ABORTABLE_HANDLE_H_
#define WARPSMITH_CORE_DISTRIBUTED_ABORTABLE_HANDLE_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace warpsmith {

// Owns a handle whose abort frees it (ncclCommAbort does), so that no call may see it afterwards. Thread-safe.
template <typename Handle>
class AbortableHandle {
 public:
  // `abort` is called once: by Abort, or by the destructor.
  AbortableHandle(Handle handle, std::function<void(Handle)> abort)
      : handle_(handle), abort_(std::move(abort)) {}
  AbortableHandle(const AbortableHandle&) = delete;
  AbortableHandle& operator=(const AbortableHandle&) = delete;
  ~AbortableHandle() { Abort(); }

  // The status of `use`, which must not block: Abort waits for it. ABORTED, without a call, after Abort.
  absl::Status Use(absl::FunctionRef<absl::Status(Handle)> use) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (aborted_) return absl::AbortedError("interrupted");
    return use(handle_);
  }

  void Abort() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(aborted_, true)) abort_(handle_);
  }

 private:
  absl::Mutex mutex_;
  const Handle handle_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  const std::function<void(Handle)> abort_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_ABORTABLE_HANDLE_H_
