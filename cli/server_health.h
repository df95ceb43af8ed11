// Asks a server whether it serves.
#ifndef WARPSMITH_CLI_SERVER_HEALTH_H_
#define WARPSMITH_CLI_SERVER_HEALTH_H_

#include <string>

#include "absl/time/time.h"

namespace warpsmith {

// Whether the gRPC server at `address` ("unix:PATH" or "host:port") says SERVING within `timeout`, also if it
// only starts to listen in that time.
bool IsServing(const std::string& address, absl::Duration timeout);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_SERVER_HEALTH_H_
