// Which of the driver's devices are those of GPUs that a jail does not use.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_OTHER_GPUS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_OTHER_GPUS_H_

#include <filesystem>
#include <set>
#include <string>

namespace warpsmith {

// "nvidia1" and the like, by what the driver says in `folder`, /proc/driver/nvidia/gpus. Empty where it does not name
// the GPU of this UUID, one of MIG's parts, say.
std::set<std::string> DevicesOfOtherGpus(const std::filesystem::path& folder, const std::string& uuid);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_OTHER_GPUS_H_
