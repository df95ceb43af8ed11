// The seam between timing and a device: what a timer asks of the processes it compares. A CPU stands behind
// it, and a fake in tests.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TIMED_SIDE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TIMED_SIDE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/cuda/clock_reading.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/profile/profile_sampler.h"
#include "reward_service/referee/tensors/draw.h"

namespace warpsmith {

// What calls came to: their wall time from the release to the confirmed stop, overhead included, or what
// the program did wrong. On a GPU the time to the program's answer, and the time from there to the stop and the GPU's
// idleness, in which an honest program does nothing.
struct CallResult {
  double us = 0;
  std::optional<Fault> fault;
  double after_us = 0;
  // Of the reference, in whatever form, by the word of its process [us]: how long it waited for the device when all
  // calls were made; and what a call took there, but for the first third of them, 0 where nobody tells.
  double waited_us = 0;
  double steady_us = 0;
};

// A program in a process of its own, warm and stopped. One thread at a time.
class TimedSide {
 public:
  virtual ~TimedSide() = default;
  // Loads input sets, calls on each, stops, and compares what is there with what is expected. With a sampler, the
  // calls are sampled into it, where this machine lets us.
  virtual CallResult Call(Batch sets, ProfileSampler* sampler) = 0;
  // Has calls from now on tell CallResult::steady_us, where this is the reference.
  virtual void TellSteady() {}
  // A call that warms the caches for the one to come, on inputs that the program has seen: a candidate on those
  // of its last call. What it leaves is compared with what the next call leaves.
  virtual CallResult Repeat(const Draw& draw) = 0;
  // When timing is over: one more call on an input set that the program has seen, and what it launches on a GPU, in a
  // Profile's kernels and num_launches, by the process's own word. UNIMPLEMENTED where no process tells it; after any
  // other status the process may have broken the device. Afterwards only its destruction makes sense.
  virtual absl::StatusOr<v1::Profile> Launches(const Draw& /*draw*/) {
    return absl::UnimplementedError("nobody tells what is launched here");
  }
  // Returns the size of what the process holds of its own now; on a GPU, of what it has ever returned as outputs.
  virtual int64_t HeldBytes() const = 0;
};

// A side, or the fault with which a candidate ended before its first call.
struct StartedSide {
  std::unique_ptr<TimedSide> side;
  std::optional<Fault> fault;
  bool is_warm = false;  // it has made the calls that warm it up, some time ago
};

// Of calls that do nothing [us], as in CallResult: medians, and of the first the median distance from it.
struct EmptyCall {
  double us = 0;
  double scatter_us = 0;
  double after_us = 0;
};

// What the path to a program costs on either side.
struct Overhead {
  EmptyCall reference;
  EmptyCall candidate;
};

// Where sides come from, and the clock of the lane.
class TimingDevice {
 public:
  virtual ~TimingDevice() = default;
  // A process of the reference, by turns; kept by the device, and warm.
  virtual absl::StatusOr<TimedSide*> Reference(int instance) = 0;
  virtual int num_references() const = 0;
  // A process of the candidate that nobody has timed, to be timed beside the reference that was asked for last.
  virtual absl::StatusOr<StartedSide> StartCandidate() = 0;
  // What a call costs now, of many in a row.
  virtual absl::StatusOr<Overhead> MeasureOverhead() = 0;
  // The same of one batch of so many calls: caches are as cold for it as for a side that has waited for the other.
  virtual absl::StatusOr<Overhead> MeasureColdOverhead(size_t num_calls) = 0;
  // What a turn on a GPU takes longer with the memory of the task, on either side, of many in a row.
  virtual absl::StatusOr<EmptyCall> MeasureMemory() { return EmptyCall(); }
  // How much longer the lane's core takes now for the same work than in the fastest of its last judgements: CorePace.
  virtual absl::StatusOr<double> MeasureCoreSlowness() { return 1; }
  // The reference's time now over the least that it was ever seen to take.
  virtual double Slowness(double reference_us) = 0;
  // The clocks of a GPU that has just worked, between calls; nothing where no GPU is used. A status: why they are not
  // known, which is no reason to stop.
  virtual absl::StatusOr<std::optional<cuda::ClockReading>> ReadClocks() = 0;
  // Since the judgement took the lane.
  virtual double LaneSeconds() const = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TIMED_SIDE_H_
