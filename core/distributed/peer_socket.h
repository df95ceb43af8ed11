// Connections between ranks of one attempt at a run: a caller shows the token that the listener has drawn.
#ifndef WARPSMITH_CORE_DISTRIBUTED_PEER_SOCKET_H_
#define WARPSMITH_CORE_DISTRIBUTED_PEER_SOCKET_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

using PeerToken = std::array<char, 16>;

// Names where a rank listens, and the token that it asks of callers.
struct PeerAddress {
  std::string host;  // numeric
  int port = 0;
  PeerToken token = {};
};

// "HOST PORT TOKEN", the token in hexadecimal digits.
std::string FormatPeerAddress(const PeerAddress& address);

// INTERNAL for a text that FormatPeerAddress did not make.
absl::StatusOr<PeerAddress> ParsePeerAddress(const std::string& text);

struct PeerCaller {
  int rank = 0;
  UniqueFd fd;
};

// Listens at the address from which this rank reaches the master, for higher ranks. One thread at a time.
class PeerListener {
 public:
  // Draws a new token. Errors: no route to the master, no port.
  static absl::StatusOr<PeerListener> Open(const ProcessGroupEnvironment& environment);

  const PeerAddress& address() const { return address_; }

  // Waits for a caller until `until`. Returns nothing where none came, or one that is no higher rank with the token.
  // ABORTED once `interrupt_fd` is readable; -1: none.
  absl::StatusOr<std::optional<PeerCaller>> Accept(absl::Time until, int interrupt_fd);

 private:
  PeerListener(const ProcessGroupEnvironment& environment, UniqueFd fd, PeerAddress address);

  int rank_;
  int world_size_;
  UniqueFd fd_;
  PeerAddress address_;
};

// Connects to the listener of `peer` as `own_rank`, within `timeout`. UNAVAILABLE names `peer` and its address.
absl::StatusOr<UniqueFd> CallPeer(int peer, const PeerAddress& address, int own_rank, absl::Duration timeout);

// Tells a caller that the listener at `own_address` has met all of its callers. UNAVAILABLE where it has closed.
absl::Status WelcomePeer(const UniqueFd& caller, int own_rank, const PeerAddress& own_address);

// Takes the answer of WelcomePeer, which must have begun to arrive. UNAVAILABLE where the peer has closed, or is none.
absl::Status TakeWelcome(const UniqueFd& fd, int peer, const PeerAddress& address);

// Returns whether the peer of a connection on which nothing is awaited has closed it.
bool HasClosed(const UniqueFd& fd);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PEER_SOCKET_H_
