#include "reward_service/server/lanes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/available_memory.h"
#include "core/base/build_info.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/server/held_gpus.h"

namespace warpsmith {
namespace {

// For whoever judges there, and for the programs: see Lane::Judge.
constexpr size_t kCoresOfGpu = 2;

template <typename Lanes>
std::vector<std::vector<int>> CoresOf(const Lanes& lanes) {
  std::vector<std::vector<int>> cores;
  for (const auto& lane : lanes) cores.push_back(lane.cores);
  return cores;
}

// What one lane's memory gives while all lanes ask for theirs.
absl::Status CalibrateTogether(const std::vector<RunningLane>& lanes) {
  std::vector<absl::Status> statuses(lanes.size());
  ForEachLane(CoresOf(lanes), [&](size_t lane) { statuses[lane] = lanes[lane].referee->Calibrate(); });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

HeldGpus HoldGpusOf(const std::vector<LanePlan>& plans) {
  std::vector<std::string> uuids;
  for (const LanePlan& plan : plans) uuids.push_back(plan.gpu_uuid);
  return HoldGpus(uuids);
}

}  // namespace

void ForEachLane(const std::vector<std::vector<int>>& cores, absl::FunctionRef<void(size_t)> work) {
  std::map<int, std::mutex> turns;
  for (const std::vector<int>& of_lane : cores)
    for (const int core : of_lane) turns[core];
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < cores.size(); ++lane) {
    threads.emplace_back([&, lane] {
      std::vector<std::unique_lock<std::mutex>> held;
      // From the lowest up, as all do, so that nobody waits for one who waits for him.
      for (const int core : std::set<int>(cores[lane].begin(), cores[lane].end()))
        held.emplace_back(turns.at(core));
      work(lane);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<std::vector<LanePlan>> PlanLanes(const std::vector<int>& cores, int num_lanes_wanted,
                                                const std::vector<cuda::GpuFacts>& gpus) {
  std::vector<LanePlan> plans;
  std::vector<int> rest = cores;
  const auto num_others = static_cast<size_t>(std::max(num_lanes_wanted, 1));
  const size_t cores_of_gpu = rest.size() >= kCoresOfGpu * gpus.size() + num_others ? kCoresOfGpu : 1;
  for (const cuda::GpuFacts& gpu : gpus) {
    LanePlan plan{.gpu_uuid = gpu.uuid};
    for (size_t i = 0; i < cores_of_gpu; ++i) {
      plan.cores.push_back(cores[(plans.size() * cores_of_gpu + i) % cores.size()]);
    }
    plans.push_back(std::move(plan));
  }
  if (const size_t num = cores_of_gpu * gpus.size(); rest.size() >= num + num_others) {
    rest.erase(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(num));
  }
  const size_t num_lanes = num_lanes_wanted > 0 ? static_cast<size_t>(num_lanes_wanted) : rest.size();
  const size_t cores_per_lane = rest.size() / num_lanes;
  if (cores_per_lane == 0) {
    return absl::InvalidArgumentError(absl::StrCat("reward_service.num_lanes is ", num_lanes,
                                                   ", more than the ", rest.size(), " lane cores"));
  }
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    const auto first = rest.begin() + static_cast<ptrdiff_t>(lane * cores_per_lane);
    plans.push_back({.cores = {first, first + static_cast<ptrdiff_t>(cores_per_lane)}});
  }
  return plans;
}

absl::StatusOr<std::vector<RunningLane>> StartLanes(const std::vector<LanePlan>& plans) {
  HeldGpus gpus = HoldGpusOf(plans);
  // GPUs share half of what is available: the service, its compilers and the lanes on cores need the rest.
  const auto num_gpus =
      std::count_if(plans.begin(), plans.end(), [](const LanePlan& plan) { return !plan.gpu_uuid.empty(); });
  const int64_t host_draw_bytes_max = AvailableMemory() / 2 / std::max<int64_t>(1, num_gpus);
  std::vector<absl::StatusOr<std::unique_ptr<Referee>>> started(plans.size());
  ForEachLane(CoresOf(plans), [&](size_t lane) {
    started[lane] = Referee::Start({.lane_cores = plans[lane].cores,
                                    .python = GetBuildInfo().python,
                                    .num_lanes = static_cast<int>(plans.size()),
                                    .host_draw_bytes_max = host_draw_bytes_max,
                                    .gpu_uuid = plans[lane].gpu_uuid});
  });
  std::vector<RunningLane> lanes;
  for (size_t lane = 0; lane < plans.size(); ++lane) {
    const bool on_gpu = !plans[lane].gpu_uuid.empty();
    if (on_gpu && !started[lane].ok()) {
      LogWarning(absl::StrCat("nothing is judged on ", plans[lane].gpu_uuid, ": ",
                              std::string(started[lane].status().message())));
      continue;
    }
    RETURN_IF_ERROR(started[lane].status());
    lanes.push_back({plans[lane].cores, on_gpu, *std::move(started[lane]), std::move(gpus.leases[lane])});
  }
  if (lanes.size() > 1) RETURN_IF_ERROR(CalibrateTogether(lanes));
  return lanes;
}

absl::StatusOr<std::vector<cuda::GpuFacts>> Chosen(const GpuChoice& choice,
                                                   std::vector<cuda::GpuFacts> gpus) {
  if (choice.indices.empty()) return gpus;
  std::vector<cuda::GpuFacts> chosen;
  for (const int index : choice.indices) {
    const auto found = std::find_if(gpus.begin(), gpus.end(),
                                    [index](const cuda::GpuFacts& gpu) { return gpu.index == index; });
    if (found == gpus.end()) {
      return absl::NotFoundError(
          absl::StrCat("reward_service.gpus names GPU ", index, ", and its machine shows ", gpus.size()));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

UsableGpus FindUsableGpus(const GpuChoice& choice, const absl::Status& compiler) {
  if (!choice.wanted) return {.why_none = "reward_service.gpus is none"};
  absl::StatusOr<std::vector<cuda::GpuFacts>> gpus = FindGpus();
  if (gpus.ok() && gpus->empty()) return {.why_none = "its machine shows no GPU"};
  if (gpus.ok()) gpus = Chosen(choice, *std::move(gpus));
  const absl::Status status = gpus.ok() ? compiler : gpus.status();
  if (status.ok()) return {.gpus = *std::move(gpus)};
  LogWarning(absl::StrCat("nothing is judged on GPUs: ", status.message()));
  return {.why_none = std::string(status.message())};
}

absl::Status CheckGpusRequired(const GpuChoice& choice, const UsableGpus& usable) {
  if (!choice.required || !usable.gpus.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "reward_service.gpus requires a GPU, and nothing can be judged on a GPU: ", usable.why_none,
      "; `warpsmith doctor` says what is missing, and with gpus: all the service starts without one"));
}

std::string GpusText(const UsableGpus& usable) {
  if (usable.gpus.empty()) return absl::StrCat("no GPU: ", usable.why_none);
  const auto name = [](std::string* text, const cuda::GpuFacts& gpu) { *text += gpu.name; };
  return absl::StrCat(usable.gpus.size(),
                      usable.gpus.size() == 1 ? " GPU: " : " GPUs: ", absl::StrJoin(usable.gpus, ", ", name));
}

std::vector<std::string> ArchitecturesOf(const std::vector<cuda::GpuFacts>& gpus) {
  std::set<std::string> architectures;
  for (const cuda::GpuFacts& gpu : gpus) architectures.insert(gpu.architecture());
  return {architectures.begin(), architectures.end()};
}

}  // namespace warpsmith
