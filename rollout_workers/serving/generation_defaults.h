// How a checkpoint wants to be sampled, where a request does not say: its generation_config.json.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_GENERATION_DEFAULTS_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_GENERATION_DEFAULTS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rollout_workers/sampling_parameters.h"

namespace warpsmith::serving {

struct GenerationDefaults {
  // temperature, top_p, top_k and min_p; the API's defaults for what the file lacks.
  SamplingParameters sampling;
  // Keys that change answers elsewhere and are not applied here, with their values: "repetition_penalty 1.3".
  std::vector<std::string> not_applied;
};

// Reads generation_config.json of `directory`; all defaults where there is none. INVALID_ARGUMENT for what is no JSON
// object, and for one of the four keys that is no number or out of its range. A key that is known to change no answer,
// or that has the value which switches it off, is passed over; every other one is not_applied, unknown ones too.
absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const std::filesystem::path& directory);

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_GENERATION_DEFAULTS_H_
