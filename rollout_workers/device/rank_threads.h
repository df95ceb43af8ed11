// A thread for each GPU of a group: what one of them launches may wait for what the others do.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_RANK_THREADS_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_RANK_THREADS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpsmith::device {

// What came of one piece of work on all threads.
struct RankOutcome {
  // The first that failed, by time: what others say may follow from it. OK: all are back, without an error.
  absl::Status status;
  int rank = -1;  // its thread
};

// One caller at a time.
class RankThreads {
 public:
  explicit RankThreads(int count);
  // Waits for no thread that is not back.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls work(rank) on every thread at once and waits for all, at most `timeout`. DEADLINE_EXCEEDED where a thread is
  // not back in time. With `on_failure` it is called by this thread, once, as soon as one has failed or time is up, to
  // end what the others wait in, and those that are not back within kGrace are given up.
  RankOutcome Run(std::function<absl::Status(int rank)> work, absl::Duration timeout,
                  const std::function<void()>& on_failure = nullptr);

  // Whether a thread is not back: it keeps what its work refers to for good, and nothing may be run any more.
  bool is_stuck() const;

  static constexpr absl::Duration kGrace = absl::Seconds(10);

 private:
  struct State;

  const int count_;
  const std::shared_ptr<State> state_;  // also of threads that are not back
};

// Where threads wait for each other.
class RankMeeting {
 public:
  explicit RankMeeting(int count);

  // Returns when as many calls as there are ranks have come since the last meeting, or after `timeout`, for a rank that
  // has failed does not come.
  void Meet(absl::Duration timeout);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_RANK_THREADS_H_
