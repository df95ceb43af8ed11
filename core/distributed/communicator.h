// Collectives of the update among the processes of one run: the data plane.
#ifndef WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/flight_recorder.h"
#include "core/distributed/watchdog.h"

namespace warpsmith {

// Element types that can be summed.
enum class ElementType { kFloat32, kFloat64, kInt64 };

int64_t ElementBytes(ElementType type);

// What a collective is for; both appear in the flight record and in every error.
struct CollectiveLabel {
  std::string_view name;   // what is communicated, e.g. "gradient"
  std::string_view phase;  // what the caller is doing, e.g. "update"
};

struct CommunicatorOptions {
  // A collective that takes longer fails on every rank.
  absl::Duration deadline = absl::Minutes(10);
  // All ranks connect within this time.
  absl::Duration meeting_timeout = absl::Minutes(10);
  // Collectives remembered for the report of a failure.
  size_t num_records = 64;
};

// What carries the collectives: TCP, or NCCL. Calls come from one thread and block; `sequence` counts the
// collectives from 0, so that peers can check that they are in the same one.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;

  virtual absl::Status AllReduceSum(void* data, int64_t count, ElementType type, int64_t sequence) = 0;
  virtual absl::Status Broadcast(void* data, int64_t num_bytes, int root, int64_t sequence) = 0;
  virtual absl::Status AllGather(const void* send, void* receive, int64_t num_bytes, int64_t sequence) = 0;
  virtual absl::Status Barrier(int64_t sequence) = 0;

  // Makes a running call return soon. Called at most once, from any thread, also while a call runs.
  virtual void Interrupt() = 0;
};

// Every rank calls the same collectives in the same order, from one thread. Each call blocks until this
// rank's part is done. Errors: DEADLINE_EXCEEDED when the deadline passes, UNAVAILABLE when a peer is gone,
// ABORTED after Abort(), INTERNAL when ranks call different collectives. After an error the communicator is
// broken: every later call returns that first error. Pointers are to memory of the backend's device (host for
// TCP, the GPU for NCCL).
//
// Interruption: the watchdog's thread alone calls the backend from outside, besides Abort. Watchdog and
// listener are members after the backend, so their threads have let go of it before it is destroyed; no
// backend has to see to that itself.
class Communicator {
 public:
  // For the ranks of `control`, which outlives this: when their group breaks, a running collective ends, and
  // its error names the lost rank.
  Communicator(ControlPlane* control, const CommunicatorOptions& options,
               std::unique_ptr<CollectiveBackend> backend);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }

  // Replaces `data`, `count` elements, by the sum over ranks; every rank gets the same bits.
  absl::Status AllReduceSum(void* data, int64_t count, ElementType type, CollectiveLabel label);

  // Copies `num_bytes` from `root` to the others.
  absl::Status Broadcast(void* data, int64_t num_bytes, int root, CollectiveLabel label);

  // Puts every rank's `num_bytes` from `send` into `receive`, which holds size() * num_bytes, in rank order.
  absl::Status AllGather(const void* send, void* receive, int64_t num_bytes, CollectiveLabel label);

  // Returns when every rank has called it.
  absl::Status Barrier(CollectiveLabel label);

  // Breaks the communicator: a running call returns `reason` soon, later ones at once. From any thread.
  void Abort(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  const FlightRecorder& recorder() const { return recorder_; }

 private:
  absl::Status Run(std::string_view operation, int64_t num_bytes, CollectiveLabel label,
                   absl::FunctionRef<absl::Status(int64_t sequence)> call);
  void OnExpiry();
  absl::Status first_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  ControlPlane* const control_;
  const CommunicatorOptions options_;
  const std::unique_ptr<CollectiveBackend> backend_;
  FlightRecorder recorder_;
  mutable absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  Watchdog watchdog_;       // its thread uses all of the above
  BreakListener listener_;  // a thread of the control plane uses the watchdog
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_
