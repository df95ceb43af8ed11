// The end of child processes of a real-time thread.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <thread>

#include "absl/time/time.h"
#include "core/base/bounded_queue.h"
#include "core/base/unique_fd.h"

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
  void Take(pid_t pid);
  // Of a process that has not said hello, whose number only its first packet tells: it finds its socket closed and ends
  // by itself, or is killed when it has spoken. Does not wait. Who says nothing for ten seconds, ends without a word,
  // or comes when 64 others are awaited, stays in the kernel's list of processes until this one ends.
  void TakeSilent(UniqueFd socket);

 private:
  struct Silent {
    UniqueFd socket;
    absl::Time deadline;
  };

  BoundedQueue<pid_t> ending_;
  BoundedQueue<Silent> silent_;
  std::thread thread_;
  std::thread silent_thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_REAP_H_
