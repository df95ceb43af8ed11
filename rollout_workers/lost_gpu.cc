#include "rollout_workers/lost_gpu.h"

#include <cstdlib>
#include <string>

#include "core/base/log.h"

namespace warpsmith {

void ExitIfLost(const absl::Status& lost) {
  if (lost.ok()) return;
  LogError(std::string(lost.message()));
  std::_Exit(EXIT_FAILURE);
}

}  // namespace warpsmith
