// What a jail says that a call launched, made fit for a Grade: the answer that Jail::Profile() asks for.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_LAUNCHED_KERNELS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_LAUNCHED_KERNELS_H_

#include <nlohmann/json.hpp>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// `profiled` is a message jail::Profiled, of whatever content. In the Profile are kernels, the longest first, their
// names escaped, and num_launches, at least as many as theirs; what is out of bounds is left out.
v1::Profile ReadLaunches(const nlohmann::json& profiled);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_LAUNCHED_KERNELS_H_
