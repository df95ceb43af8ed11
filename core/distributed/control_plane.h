// What the processes of a run tell each other on the host: decisions, batches, signs of life.
#ifndef WARPSMITH_CORE_DISTRIBUTED_CONTROL_PLANE_H_
#define WARPSMITH_CORE_DISTRIBUTED_CONTROL_PLANE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/base/wait_lines.h"
#include "core/distributed/control_connection.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/rendezvous_store.h"

namespace warpsmith {

struct ControlPlaneOptions {
  // All ranks connect within this time.
  absl::Duration meeting_timeout = absl::Minutes(10);
  // Every rank says what it is doing this often, and whenever that changes.
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // A rank of which nothing is heard for so long is lost.
  absl::Duration silence_max = absl::Minutes(1);
  // Of waits at the start: until all have met, and in exchanges until this rank calls Say().
  WaitLineOptions lines;
};

// Exchanges of host memory through rank 0, over TCP whatever the communicator of the update uses. Every rank
// calls the same exchanges in the same order, from one thread. An exchange has no deadline: rank 0 may be
// busy for an hour. It waits as long as all ranks live, which a thread of each one says once a second.
//
// When a rank is lost (its connection closes, or it is silent too long) or ends with an error, the group is
// broken: every running and later exchange on every rank returns that first failure, which names the rank,
// what it said last and when. UNAVAILABLE: a rank was lost. ABORTED: a rank ended with an error.
// CANCELLED: a rank ended with CANCELLED, because it was asked to stop. INTERNAL: ranks are in different
// exchanges.
class ControlPlane {
 public:
  // Meets the other ranks through the store of the launcher, or of rank 0, which then serves it for as long as
  // its plane lives. A single process needs no network.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Create(const ProcessGroupEnvironment& environment,
                                                              const ControlPlaneOptions& options = {});
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // Sends what is left to be sent, for at most two seconds. Without Leave, the others
  // take this rank for lost.
  ~ControlPlane();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // What this rank does from now on, for the others' errors: "collecting, step 12". Any thread.
  void Say(std::string activity) ABSL_LOCKS_EXCLUDED(mutex_);

  // Rank 0's `bytes` on every rank; those of the others are ignored. `what` names them in errors.
  absl::StatusOr<std::string> Broadcast(std::string bytes, std::string_view what);

  // Every rank's `bytes`, in rank order, on every rank.
  absl::StatusOr<std::vector<std::string>> AllGather(std::string bytes, std::string_view what);

  // Returns when every rank has called it.
  absl::Status Barrier(std::string_view what);

  // OK, or what broke the group. Any thread.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What broke the group, if `failure` of another connection of the ranks is only what followed from it: a
  // rank that dies closes all its connections, and the ranks that notice first close theirs. Waits a moment for the
  // news; else `failure`.
  absl::Status CauseOf(const absl::Status& failure) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells the others how this rank ends; with an error, they end too.
  void Leave(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class BreakListener;
  struct Peer;
  using Merge = absl::FunctionRef<std::string(std::vector<std::string>)>;

  ControlPlane(const ProcessGroupEnvironment& environment, const ControlPlaneOptions& options,
               std::unique_ptr<RendezvousStore> store, std::vector<UniqueFd> peers, UniqueFd wake);

  absl::StatusOr<std::shared_ptr<const std::string>> Exchange(std::string bytes, std::string_view what,
                                                              Merge merge) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitPart(Peer& peer, std::string_view what, absl::Time began, absl::Time* line_due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitParts(int64_t sequence, std::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(Peer& peer, bool readable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Peer& peer, ControlFrame frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Beat() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(Peer& peer, std::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueEnd(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SaidGoodbye() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();

  const int rank_;
  const int size_;
  const ControlPlaneOptions options_;
  const std::unique_ptr<RendezvousStore> store_;  // null for a single process
  const UniqueFd wake_;                           // eventfd: the thread has something to do

  mutable absl::Mutex mutex_;
  mutable absl::CondVar changed_;
  std::vector<std::unique_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);  // all others on rank 0, else rank 0
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_break_ ABSL_GUARDED_BY(mutex_);
  std::string activity_ ABSL_GUARDED_BY(mutex_) = "starting";
  bool has_said_ ABSL_GUARDED_BY(mutex_) = false;  // Say() was called
  absl::Duration activity_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_beat_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> stop_by_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // serves all connections; none where the process is alone
};

// Calls `on_break` when the group of `plane` breaks, on a thread of the plane, for as long as this object
// lives: after its destructor no call runs. At most one a plane at a time. `on_break` must not block, nor call
// the plane.
class BreakListener {
 public:
  BreakListener(ControlPlane* plane, std::function<void()> on_break);
  BreakListener(const BreakListener&) = delete;
  BreakListener& operator=(const BreakListener&) = delete;
  ~BreakListener();

 private:
  ControlPlane* const plane_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_CONTROL_PLANE_H_
