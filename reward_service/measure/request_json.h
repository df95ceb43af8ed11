// On the channel between service and referee: parts of a request, a referee's facts, and a candidate's
// recording.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/referee.h"

namespace warpsmith {

// Both ends are ours and of one build: a missing field is an error of the build.
nlohmann::json ToJson(const RefereeFacts& facts);
RefereeFacts FactsFromJson(const nlohmann::json& fields);

nlohmann::json ToJson(const cuda::GpuFacts& gpu);
std::vector<cuda::GpuFacts> GpusFromJson(const nlohmann::json& list);

nlohmann::json ToJson(const JudgeLimits& limits);
JudgeLimits LimitsFromJson(const nlohmann::json& fields);
nlohmann::json ToJson(const TimingEffort& timing);
TimingEffort TimingFromJson(const nlohmann::json& fields);

// From a jail's recording, which is not trusted: INVALID_ARGUMENT when it is malformed or over the bounds.
absl::StatusOr<std::vector<ExtensionRecord>> ExtensionsFromJson(const nlohmann::json& list, bool own_kernels);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_REQUEST_JSON_H_
