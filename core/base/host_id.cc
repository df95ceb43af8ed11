#include "core/base/host_id.h"

#include "absl/strings/ascii.h"
#include "core/base/file.h"

namespace warpsmith {

std::string HostId() {
  const absl::StatusOr<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(absl::StripAsciiWhitespace(*id)) : "";
}

}  // namespace warpsmith
