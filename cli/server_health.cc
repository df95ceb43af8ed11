#include "cli/server_health.h"

#include "core/rpc/channel.h"

namespace warpsmith {

bool IsServing(const std::string& address, absl::Duration timeout) {
  return WaitUntilServing(CreateChannel(address), /*service=*/"", timeout).ok();
}

}  // namespace warpsmith
