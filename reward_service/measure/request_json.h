// On the channel between service and referee: a lane's options, parts of a request, a referee's facts, and a
// candidate's recording.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/referee.h"

namespace warpsmith::cuda {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, index, name, uuid, driver_version, capability_major,
                                   capability_minor, memory_bytes, l2_cache_bytes, num_multiprocessors)

}  // namespace warpsmith::cuda

// Writes null where a lane has no GPU.
template <>
struct nlohmann::adl_serializer<std::optional<warpsmith::cuda::GpuFacts>> {
  static void to_json(json& fields, const std::optional<warpsmith::cuda::GpuFacts>& gpu) {
    fields = gpu ? json(*gpu) : json();
  }
  static void from_json(const json& fields, std::optional<warpsmith::cuda::GpuFacts>& gpu) {
    gpu.reset();
    if (!fields.is_null()) gpu = fields.get<warpsmith::cuda::GpuFacts>();
  }
};

namespace warpsmith {

// Both ends are ours and of one build: a missing field is an error of the build.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RefereeOptions, lane_cores, python, bin_directory, share_directory,
                                   realtime, jail_memory_bytes_max, oracle_memory_bytes_max, buffer_bytes_max,
                                   num_tasks_max, host_draw_bytes_max, gpu_uuid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RefereeFacts, lane_cores, realtime, profile, torch_version,
                                   torch_cpu_capability, empty_call_us, sample_us,
                                   gigabytes_per_second_ceiling, nearest_cache_gigabytes_per_second, gpu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JudgeLimits, cpu_seconds_max, call_seconds_max, lane_seconds_max)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimingEffort, num_instances_min, num_instances_max, num_rounds_max,
                                   relative_width_max, baselines)

// From a jail's recording, which is not trusted: INVALID_ARGUMENT when it is malformed or over the bounds.
absl::StatusOr<std::vector<ExtensionRecord>> ExtensionsFromJson(const nlohmann::json& list, bool own_kernels);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_
