// The end of child processes of a real-time thread.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/bounded_queue.h"

namespace warpsmith {

// wait4(2) without options, repeated when interrupted, and never at a real-time priority, which the thread
// has again afterwards. As part of the wait the kernel takes the process out of /proc, and spins as long as
// one of the process's threads is at the same work for itself. If that thread has a lower real-time priority
// and no other core, it does not run again: the wait would never end, nor could anybody kill it.
pid_t Reap(pid_t pid, int* status, rusage* usage = nullptr);

// Reaps killed processes on a thread of its own: to take down the mappings of a Python process with Torch
// takes the kernel some 10 ms. Thread-safe; must outlive whoever calls it.
class Reaper {
 public:
  Reaper();
  ~Reaper();  // when all are reaped
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Of a process that was killed. Waits while eight others end, so that their memory is bounded; the kernel
  // ends each in finite time, whatever it did.
  void Take(pid_t pid) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the threads of a stopped process end where this reaper runs, and not on the core of whoever is timed next.
  void Attract(pid_t pid) const;
  // Waits until all that were taken are gone, and whatever they left on a device with them. UNAVAILABLE: they do not
  // end.
  absl::Status AwaitAll(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsDone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return num_ending_ == 0; }

  cpu_set_t cores_{};
  absl::Mutex mutex_;
  int num_ending_ ABSL_GUARDED_BY(mutex_) = 0;
  BoundedQueue<pid_t> ending_;
  std::thread thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_
