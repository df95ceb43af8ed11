// Collectives among the processes of one run.
#ifndef WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
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
  // Collectives remembered for the report of a failure.
  size_t num_records = 64;
};

// Every rank calls the same collectives in the same order, from one thread. Each call blocks until this
// rank's part is done. Errors: DEADLINE_EXCEEDED when the deadline passes, UNAVAILABLE when a peer is gone,
// ABORTED after Abort(), INTERNAL when ranks call different collectives. After an error the communicator is
// broken: every later call returns that first error. Pointers are to memory of the implementation's device
// (host for TCP, the GPU for NCCL).
class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

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

 protected:
  Communicator(int rank, int size, const CommunicatorOptions& options);

  virtual absl::Status DoAllReduceSum(void* data, int64_t count, ElementType type) = 0;
  virtual absl::Status DoBroadcast(void* data, int64_t num_bytes, int root) = 0;
  virtual absl::Status DoAllGather(const void* send, void* receive, int64_t num_bytes) = 0;
  virtual absl::Status DoBarrier() = 0;

  // Makes a running Do... call return soon. Called once, from any thread.
  virtual void Interrupt() = 0;

  // Implementations call this first in their destructors, while they can still be interrupted.
  void StopWatchdog() { watchdog_.reset(); }

  // Sequence and operation of the running collective, for checking that peers are in the same one.
  int64_t current_sequence() const { return current_sequence_; }

 private:
  template <typename Call>
  absl::Status Run(std::string_view operation, int64_t num_bytes, CollectiveLabel label, Call call);
  void OnDeadline();
  absl::Status first_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  const int rank_;
  const int size_;
  const CommunicatorOptions options_;
  FlightRecorder recorder_;
  int64_t current_sequence_ = -1;
  mutable absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::optional<Watchdog> watchdog_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_COMMUNICATOR_H_
