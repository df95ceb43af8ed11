// The lanes of a service: which there are, and their referees.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_LANES_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_LANES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/device_lease.h"
#include "reward_service/cuda/driver.h"
#include "reward_service/measure/referee.h"
#include "reward_service/server/gpu_choice.h"

namespace warpsmith {

// One lane: on a GPU, driven from cores of its own, or on its cores alone.
struct LanePlan {
  std::vector<int> cores;
  std::string gpu_uuid;
};

// Those that are to be used, or why there are none.
struct UsableGpus {
  std::vector<cuda::GpuFacts> gpus;
  std::string why_none;
};

// `compiler`: whether there is one for GPUs' programs, without which nothing could be judged there. A GPU or a driver
// that is there and cannot be used is said in the log, too.
UsableGpus FindUsableGpus(const GpuChoice& choice, const absl::Status& compiler);

// Returns those of `gpus` that are chosen, in the order of the choice. NOT_FOUND names an index that no GPU has.
absl::StatusOr<std::vector<cuda::GpuFacts>> Chosen(const GpuChoice& choice, std::vector<cuda::GpuFacts> gpus);

// FAILED_PRECONDITION with `why_none` where there are none and `choice` requires one.
absl::Status CheckGpusRequired(const GpuChoice& choice, const UsableGpus& usable);

// "2 GPUs: NVIDIA H100 80GB HBM3, NVIDIA H100 80GB HBM3" or "no GPU: " and why.
std::string GpusText(const UsableGpus& usable);

// For compilers, each once: "sm_90a".
std::vector<std::string> ArchitecturesOf(const std::vector<cuda::GpuFacts>& gpus);

// Of `cores`, at least one, the lane of each GPU has two, or one where there are not so many, and `num_lanes` others
// have equal parts of the rest; 0: one on each. Where there are not even so many, those of GPUs are shared. Lanes of
// GPUs come first. INVALID_ARGUMENT for more lanes than cores.
absl::StatusOr<std::vector<LanePlan>> PlanLanes(const std::vector<int>& cores, int num_lanes,
                                                const std::vector<cuda::GpuFacts>& gpus);

struct RunningLane {
  std::vector<int> cores;
  bool on_gpu = false;
  std::unique_ptr<Referee> referee;
  std::optional<DeviceLease> lease;  // of its GPU
};

// Calls work(lane) of all lanes at once, in threads of their own; of those that share a core one at a time, for a
// judge that measures with real-time priority leaves nothing of its core to another's candidate. `cores`: of each lane.
void ForEachLane(const std::vector<std::vector<int>>& cores, absl::FunctionRef<void(size_t)> work);

// A referee for each plan. Each warms itself for seconds, all at once; then all measure together what they have of
// the machine, lanes that share a core by turns. GPUs are held meanwhile: one that another process uses is waited for,
// ten minutes at most. A GPU on which none starts is left out, which is said in the log; without the others there is no
// service.
absl::StatusOr<std::vector<RunningLane>> StartLanes(const std::vector<LanePlan>& plans);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_LANES_H_
