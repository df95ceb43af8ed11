#include "reward_service/server/lanes.h"

#include <set>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

cuda::GpuFacts Gpu(const std::string& uuid, int major) {
  cuda::GpuFacts gpu;
  gpu.uuid = uuid;
  gpu.capability_major = major;
  return gpu;
}

std::vector<std::vector<int>> CoresOf(const absl::StatusOr<std::vector<LanePlan>>& plans) {
  REQUIRE(plans.ok());
  std::vector<std::vector<int>> cores;
  for (const LanePlan& plan : *plans) cores.push_back(plan.cores);
  return cores;
}

TEST_CASE("without GPUs the lane cores are dealt out evenly") {
  CHECK(CoresOf(PlanLanes({4, 5, 6}, 0, {})) == std::vector<std::vector<int>>{{4}, {5}, {6}});
  CHECK(CoresOf(PlanLanes({4, 5, 6}, 1, {})) == std::vector<std::vector<int>>{{4, 5, 6}});
  CHECK(PlanLanes({4, 5, 6}, 4, {}).status() ==
        absl::InvalidArgumentError("reward_service.num_lanes is 4, more than the 3 lane cores"));
}

TEST_CASE("a GPU's lane comes first and has two cores, or one, of its own where there are some to spare") {
  const std::vector<cuda::GpuFacts> gpus = {Gpu("GPU-a", 9), Gpu("GPU-b", 9)};
  CHECK(CoresOf(PlanLanes({3, 4, 5, 6, 7}, 0, gpus)) == std::vector<std::vector<int>>{{3, 4}, {5, 6}, {7}});
  const auto plans = PlanLanes({4, 5, 6, 7}, 0, gpus);
  CHECK(CoresOf(plans) == std::vector<std::vector<int>>{{4}, {5}, {6}, {7}});
  CHECK((*plans)[1].gpu_uuid == "GPU-b");
  CHECK((*plans)[2].gpu_uuid.empty());
  CHECK(CoresOf(PlanLanes({4, 5, 6, 7}, 3, gpus)) == std::vector<std::vector<int>>{{4}, {5}, {4}, {5}, {6}});
  CHECK(CoresOf(PlanLanes({7}, 0, gpus)) == std::vector<std::vector<int>>{{7}, {7}, {7}});
}

TEST_CASE("lanes with cores of their own work at once, those that share one by turns") {
  absl::Mutex mutex;
  std::multiset<int> busy;
  bool alone = true, met = false;
  const std::vector<std::vector<int>> cores = {{4}, {5, 4}, {4, 5}, {6}};
  ForEachLane(cores, [&](size_t lane) {
    const absl::MutexLock lock(&mutex);
    busy.insert(cores[lane].begin(), cores[lane].end());
    if (lane == 3) return;  // its core stays busy
    const auto disturbed = [&] { return busy.count(4) > 1; };
    alone = !mutex.AwaitWithTimeout(absl::Condition(&disturbed), absl::Milliseconds(20)) && alone;
    const auto with_other = [&] { return busy.count(6) > 0; };
    if (lane == 0) met = mutex.AwaitWithTimeout(absl::Condition(&with_other), absl::Seconds(30));
    for (const int core : cores[lane]) busy.erase(core);
  });
  CHECK(alone);
  CHECK(met);
}

TEST_CASE("programs are compiled once for GPUs of a kind, and GPUs that are not wanted are not looked for") {
  CHECK(ArchitecturesOf({Gpu("a", 9), Gpu("b", 9), Gpu("c", 8)}) ==
        std::vector<std::string>{"sm_80", "sm_90a"});
  const UsableGpus found = FindUsableGpus({.wanted = false}, absl::OkStatus());
  CHECK(found.gpus.empty());
  CHECK(found.why_none == "reward_service.gpus is none");
}

TEST_CASE("a service that requires a GPU is told why it has none") {
  const UsableGpus none{.why_none = "its machine shows no GPU"};
  const absl::Status refused = CheckGpusRequired({.required = true}, none);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::StartsWith("reward_service.gpus requires a GPU, ") && Catch::Contains("shows no GPU; "));
  CHECK(CheckGpusRequired({}, none).ok());
  CHECK(CheckGpusRequired({.required = true}, {.gpus = {Gpu("a", 9)}}).ok());
}

TEST_CASE("GPUs are chosen by index, in the order of the choice") {
  std::vector<cuda::GpuFacts> gpus = {Gpu("a", 9), Gpu("b", 9)};
  gpus[1].index = 1;
  CHECK(Chosen({}, gpus)->size() == 2);
  const auto chosen = Chosen({.indices = {1}}, gpus);
  REQUIRE(chosen->size() == 1);
  CHECK(chosen->front().uuid == gpus[1].uuid);
  const absl::Status absent = Chosen({.indices = {1, 2}}, gpus).status();
  CHECK(absl::IsNotFound(absent));
  CHECK_THAT(std::string(absent.message()), Catch::Contains("names GPU 2"));
}

TEST_CASE("GPUs are named for the log, or why there are none") {
  cuda::GpuFacts gpu = Gpu("a", 9);
  gpu.name = "NVIDIA H100";
  CHECK(GpusText({.gpus = {gpu}}) == "1 GPU: NVIDIA H100");
  CHECK(GpusText({.gpus = {gpu, gpu}}) == "2 GPUs: NVIDIA H100, NVIDIA H100");
  CHECK(GpusText({.why_none = "its machine shows no GPU"}) == "no GPU: its machine shows no GPU");
}

}  // namespace
}  // namespace warpsmith
