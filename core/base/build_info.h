// What this build knows about itself and its machine.
#ifndef WARPSMITH_CORE_BASE_BUILD_INFO_H_
#define WARPSMITH_CORE_BASE_BUILD_INFO_H_

#include <string>

namespace warpsmith {

struct BuildInfo {
  std::string version;        // of Warpsmith, e.g. "0.1.0"
  std::string python;         // interpreter with torch, for task code
  std::string torch_dir;      // folder of the torch package LibTorch was taken from
  std::string torch_version;  // e.g. "2.11.0"
};

BuildInfo GetBuildInfo();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_BUILD_INFO_H_
