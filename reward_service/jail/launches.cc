#include "reward_service/jail/launches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/kernel_name.h"
#include "reward_service/jail/launch_messages.h"

namespace warpsmith {

void Launches::AddKernel(const KernelLaunch& launch, int64_t nanoseconds) {
  Sum& sum = kernels_[launch];
  ++sum.num_launches;
  sum.nanoseconds += std::max<int64_t>(nanoseconds, 0);
  ++num_launches_;
}

nlohmann::json Launches::ToMessage() const {
  using jail::LaunchedKernel, jail::Profiled;
  std::vector<std::pair<KernelLaunch, Sum>> longest(kernels_.begin(), kernels_.end());
  std::stable_sort(longest.begin(), longest.end(), [](const auto& left, const auto& right) {
    return left.second.nanoseconds > right.second.nanoseconds;
  });
  longest.resize(std::min(longest.size(), Profiled::kernels.num_max));
  nlohmann::json kernels = nlohmann::json::array();
  for (const auto& [launch, sum] : longest) {
    kernels.push_back({{LaunchedKernel::name, KernelName(launch.symbol)},
                       {LaunchedKernel::grid, launch.grid},
                       {LaunchedKernel::block, launch.block},
                       {LaunchedKernel::registers, launch.registers},
                       {LaunchedKernel::shared_bytes, launch.shared_bytes},
                       {LaunchedKernel::num_launches, sum.num_launches},
                       {LaunchedKernel::us, static_cast<double>(sum.nanoseconds) / 1e3}});
  }
  return Make<Profiled>({{Profiled::kernels, kernels}, {Profiled::num_launches, num_launches_}});
}

}  // namespace warpsmith
