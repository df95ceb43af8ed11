// Addresses a server can bind: "host:port", "[::1]:port", "unix:/path".
#ifndef WARPSMITH_CORE_RPC_SERVER_ADDRESS_H_
#define WARPSMITH_CORE_RPC_SERVER_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

struct ServerAddress {
  std::string host;         // of a TCP address, in the form it was given
  int port = 0;             // 0: any free one
  std::string socket_path;  // of a Unix socket; empty for TCP
};

// INVALID_ARGUMENT for anything else, or a path longer than a socket address holds.
absl::StatusOr<ServerAddress> ParseServerAddress(const std::string& address);

// INVALID_ARGUMENT for what no client should dial: a scheme, "http://host:80", no host, no port or port 0, or a host on
// which servers listen on all interfaces, 0.0.0.0 or [::], which reaches the client's own machine at best.
// "ipv4:10.0.0.1:50061,10.0.0.2:50061" is checked by parts.
// Other forms of CreateChannel that no server binds, such as "dns:///name:50061", are gRPC's to check.
absl::Status CheckClientAddress(const std::string& address);

// The address a client dials once `bound_port` is known.
std::string FormatServerAddress(const ServerAddress& address, int bound_port);

// `status` of a server that starts. Where its address is taken, `key`, the configuration's or a flag, ends the message
// as what to change; empty: nothing does.
absl::Status NameAddressKey(const absl::Status& status, const std::string& key);

// ALREADY_EXISTS if a server answers at `socket_path`: gRPC would unlink the socket from under it. One left
// behind by a dead server is fine.
absl::Status CheckSocketFree(const std::string& socket_path);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_SERVER_ADDRESS_H_
