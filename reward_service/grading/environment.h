// Where grades are measured: the stamp of every Grade, and the division of the machine's cores.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_ENVIRONMENT_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Cores that this process may use, in rising order.
std::vector<int> AllowedCores();

// Cores for the lanes and for everything else. `wanted` empty: the last core of four or fewer, else the last
// half: a candidate takes about as long to compile as to judge. With a single core both are that core.
// INVALID_ARGUMENT for a wanted core that is not allowed or named twice.
struct CoreDivision {
  std::vector<int> lane;
  std::vector<int> others;
};
absl::StatusOr<CoreDivision> DivideCores(const std::vector<int>& allowed, const std::vector<int>& wanted);

// Binds the calling thread, and all that it starts from now on, to `cores`.
absl::Status PinTo(const std::vector<int>& cores);

// "1" or "2,3".
std::string CoresText(const std::vector<int>& cores);

// Host, processor and versions; compiler, torch and lane as given.
v1::Environment MakeEnvironment(const std::string& lane_cores, const std::string& compiler,
                                const std::string& torch_version, const std::string& torch_cpu_capability);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_ENVIRONMENT_H_
