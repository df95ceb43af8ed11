#include "core/base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace warpsmith {

int RaiseDescriptorLimit() {
  constexpr rlim_t kLimitMax = 1 << 30;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min(limit.rlim_cur, kLimitMax));
}

}  // namespace warpsmith
