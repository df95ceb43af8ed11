// The service's handle on one referee process, which measures and decides on one lane.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/cuda/driver.h"
#include "reward_service/measure/judge_request.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// The folder share/warpsmith of this build or installation: what confined processes run and read.
std::filesystem::path ShareDirectory();

struct RefereeOptions {
  // Cores that this lane holds alone; referee and jails are pinned to them. Oracles and spare jails run on
  // the rest.
  std::vector<int> lane_cores;
  std::filesystem::path python;  // interpreter with torch; empty: the build's
  std::filesystem::path
      bin_directory;  // with warpsmith-referee and warpsmith-jail; empty: beside this program
  std::filesystem::path share_directory;  // with oracle/ and jail/; empty: <bin_directory>/../share/warpsmith
  bool realtime = true;                   // SCHED_FIFO where the right exists
  int64_t jail_memory_bytes_max = int64_t{4} << 30;    // address space beyond that of the zygote
  int64_t oracle_memory_bytes_max = int64_t{8} << 30;  // likewise
  int64_t buffer_bytes_max = int64_t{256} << 20;       // inputs, or outputs, of one call
  // Tasks kept ready, some 240 MB each, and half as much on a GPU; 0: as many as this lane's part of half of the memory
  // holds, 8 to 128.
  int num_tasks_max = 0;
  int num_lanes = 1;  // that share the machine
  // On a GPU: of the host's memory, what the draws of tasks may take that it has no room for. 0: there are none.
  int64_t host_draw_bytes_max = 0;
  // Of the GPU on which this lane judges, as the driver knows it; empty: on its cores.
  std::string gpu_uuid;
  // Restarts of a dead referee before Judge() fails for good.
  int num_restarts_max = 100;  // without an answer between them
};

// Candidates that a lane of a GPU judges at once: they are verified beside each other, and timed one by one. On cores a
// lane judges one.
inline constexpr int kJudgedAtOnceOnGpu = 4;
// Of one that is verified beside others, who wait until it has done: most take a tenth of that.
inline constexpr double kBesideOthersSecondsMax = 4;

// What a referee can do here, for capabilities, the environment stamp and cache keys.
struct RefereeFacts {
  std::string lane_cores;  // "1" or "2,3"
  bool realtime = false;
  bool profile = false;  // perf_event_open works
  std::string torch_version;
  std::string torch_cpu_capability;  // of its kernels: "AVX512", "AVX2", "DEFAULT", ...
  // Measured on the lane, while all lanes of the machine measure.
  double empty_call_us = 0;                       // of a Python program that does nothing
  double sample_us = 0;                           // what a sample of a profile costs whoever is sampled
  double gigabytes_per_second_ceiling = 0;        // of copying in memory, reads and writes added
  double nearest_cache_gigabytes_per_second = 0;  // of writing, for one core
  std::optional<cuda::GpuFacts> gpu;              // on which this lane judges
};

// The GPUs of this machine, asked of a process of its own: `bin_directory` as in RefereeOptions. None where there is no
// driver or no GPU; FAILED_PRECONDITION for a driver that is too old.
absl::StatusOr<std::vector<cuda::GpuFacts>> FindGpus(const std::filesystem::path& bin_directory = {});

// Spawns and owns `warpsmith-referee`. Thread-safe; of calls of Judge a lane of cores takes one at a time, one of a
// GPU kJudgedAtOnceOnGpu. The process is killed, with all its jails, when this object is destroyed.
class Referee {
 public:
  // Blocks until the referee has warmed its zygotes (2 to 4 s).
  // FAILED_PRECONDITION with the fix when this machine cannot confine processes.
  static absl::StatusOr<std::unique_ptr<Referee>> Start(RefereeOptions options);

  virtual ~Referee() = default;

  // One candidate's verdict and all else that a referee measures. A status is a failure of
  // infrastructure (dead referee, deadline passed, out of memory): the candidate is UNSCORABLE. The
  // referee is restarted by the next call.
  virtual absl::StatusOr<v1::Measurement> Judge(const JudgeRequest& request, absl::Time deadline) = 0;

  // First run of a kernelbench_python candidate: which extensions it wants built. An empty list when it wants
  // none. Beside judgements, but for programs that need a GPU to be asked: they have its turn.
  // Starts no referee, for that measures its device, which another process may have: UNAVAILABLE where none runs, until
  // Revive().
  // INVALID_ARGUMENT, with an escaped reason, when the program fails before; that is the candidate's
  // RUNTIME_ERROR. FAILED_PRECONDITION when the task is at fault, as Judge will say.
  virtual absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource& task,
                                                                        const std::string& source,
                                                                        absl::Time deadline) = 0;

  // OK where the referee runs, or was started again now. Else what it failed with: nothing is judged on this lane until
  // a later call succeeds.
  virtual absl::Status Revive() = 0;

  // Measures the host again, for facts(). All lanes of a machine do so at once, so that each knows its part.
  virtual absl::Status Calibrate() = 0;

  // Makes oracle, inputs and baselines of a task ready in idle time; returns at once. A hint: errors show in
  // Judge.
  virtual void Prefetch(const TaskSource& task) = 0;

  // As of its last start or calibration.
  virtual RefereeFacts facts() const = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_H_
