// Jails for one candidate: each of its processes is started here, sealed or open, and kept where it waits.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/referee/checked_jail.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"
#include "reward_service/referee/task/prepared_task.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// A jail whose program is loaded, or the fault with which that ended.
struct StartedJail {
  std::unique_ptr<CheckedJail> jail;
  std::optional<Fault> fault;
  absl::Duration waited;        // as StartedProgram has it
  absl::Duration constructing;  // the same
};

struct CandidateJailOptions {
  Zygote* zygote = nullptr;  // of the candidate's kind
  const Lane* lane = nullptr;
  int64_t memory_bytes_max = 0;  // of the host's, besides what the reference's parameters take
  Room room = Room::kSealed;
  const std::vector<UniqueFd>* emptied = nullptr;  // the candidate's libraries in Room::kEmptied
  bool tells_launches = false;                     // of LaneTools
  absl::Time deadline;
};

// For the thread that holds the lane. What it is given outlives it.
class CandidateJails {
 public:
  CandidateJails(const CandidateJailOptions& options, const JudgeRequest& request, int source_fd,
                 v1::Measurement* measurement)
      : options_(options), request_(request), source_fd_(source_fd), measurement_(measurement) {}

  // A fresh process with the candidate in it, to be timed beside `baseline`, or, without one, verified, and on a GPU
  // with memory for it timed later. The task outlives it.
  absl::StatusOr<StartedJail> Start(PreparedTask& task, const Jail* baseline, int num_threads);
  // One that waits while others are timed, with inputs of its own: a program can have the GPU begin work when something
  // is written to its inputs.
  absl::StatusOr<StartedJail> StartAhead(PreparedTask& task, int num_threads);
  // Returns when such a process need not be waited for, unless none was asked for ahead; bounded. Without a turn, which
  // others wait for.
  void AwaitSpare(PreparedTask& task);
  Room room() const { return options_.room; }
  bool tells_launches() const { return options_.tells_launches; }

 private:
  absl::StatusOr<StartedJail> StartWith(PreparedTask& task, int num_threads,
                                        absl::FunctionRef<absl::StatusOr<Buffers>(LaneTask&)> make_buffers);
  // What the reference's constructor takes, but no longer than a candidate may hold the lane.
  absl::Duration ConstructionTime(const PreparedTask& task) const;
  // The request's, and that time besides.
  JudgeLimits LimitsFor(const PreparedTask& task) const;
  ChildRights RightsFor(PreparedTask& task) const;
  // Returns whether libraries may copy tensors for the candidate: where copying is no part of the reference's work.
  bool MayCopy(PreparedTask& task) const;
  int NumLaunchQueues(const PreparedTask& task) const;
  Program MakeProgram(const PreparedTask& task, int num_threads) const;

  const CandidateJailOptions options_;
  const JudgeRequest& request_;
  const int source_fd_;  // of a Python candidate
  v1::Measurement* const measurement_;
};

class KeptJails;

// Processes of candidates of all judgements that are there, stopped, before they are timed and after, while others may
// be. Thread-safe.
class AllKeptJails {
 public:
  // For whoever has the device alone, where it does not come to rest, or lacks memory: the processes are killed.
  // Whoever keeps them starts others when it is alone. Whether there were any that nobody had killed before.
  bool Kill() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class KeptJails;
  absl::Mutex mutex_;
  std::set<KeptJails*> members_ ABSL_GUARDED_BY(mutex_);
};

// Of one judgement, for its thread.
class KeptJails {
 public:
  // `all` outlives it.
  explicit KeptJails(AllKeptJails* all);
  ~KeptJails();
  KeptJails(const KeptJails&) = delete;
  KeptJails& operator=(const KeptJails&) = delete;

  // One that has made the calls that warm it up, to be timed.
  void AddWarm(std::unique_ptr<CheckedJail> jail) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last of these; null where there is none, or it was killed.
  std::unique_ptr<CheckedJail> TakeWarm() ABSL_LOCKS_EXCLUDED(mutex_);
  // One that was verified: it has seen more than the others, and is never the first that is taken.
  void AddVerified(std::unique_ptr<CheckedJail> jail) ABSL_LOCKS_EXCLUDED(mutex_);
  // One that only has to end, without a fault.
  void AddEnded(std::unique_ptr<CheckedJail> jail) ABSL_LOCKS_EXCLUDED(mutex_);
  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  int num_warm() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Kills all at once and waits for their ends, until `deadline` at most: UNAVAILABLE, for what a driver does not let
  // go may still write to its memory, which is never given back then.
  absl::Status End(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class AllKeptJails;
  bool Kill() ABSL_LOCKS_EXCLUDED(mutex_);  // on any thread; as that of all
  bool KillNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AllKeptJails* const all_;
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<CheckedJail>> warm_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<CheckedJail> verified_ ABSL_GUARDED_BY(mutex_);  // waits as they do
  bool has_asked_ ABSL_GUARDED_BY(mutex_) = false;                 // TakeWarm() was called
  std::vector<std::unique_ptr<CheckedJail>> ended_ ABSL_GUARDED_BY(mutex_);
  size_t num_killed_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, the first ones
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_H_
