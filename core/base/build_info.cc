#include "core/base/build_info.h"

#include "build_info_values.h"

namespace warpsmith {

BuildInfo GetBuildInfo() {
  return {.version = WARPSMITH_BUILD_VERSION,
          .python = WARPSMITH_BUILD_PYTHON,
          .torch_dir = WARPSMITH_BUILD_TORCH_DIR,
          .torch_version = WARPSMITH_BUILD_TORCH_VERSION};
}

}  // namespace warpsmith
