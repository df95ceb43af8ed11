// How the service, referee, jails and oracles talk: JSON objects with fixed fields over SOCK_SEQPACKET, each
// preceded by its length as four little-endian bytes, with descriptors by SCM_RIGHTS. Never anything that
// executes on reading.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_PACKET_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_PACKET_H_

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// By default a socket has room for 208 KiB. Longer texts travel as descriptors of sealed files.
constexpr size_t kPacketBytesMax = 192 << 10;
constexpr int kPacketDescriptorsMax = 32;

struct Packet {
  nlohmann::json fields;              // always an object
  std::vector<UniqueFd> descriptors;  // close-on-exec
  pid_t sender = 0;                   // by the kernel, where SO_PASSCRED is set on the receiving end; else 0
};

// A connected pair, both ends close-on-exec.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakePacketPair();

// Sends without waiting. UNAVAILABLE when the other end is gone; RESOURCE_EXHAUSTED when it does not read.
absl::Status SendPacket(int socket, const nlohmann::json& fields, const std::vector<int>& descriptors = {});

// Waits until `deadline` for one packet. UNAVAILABLE when the other end is gone, DEADLINE_EXCEEDED,
// INVALID_ARGUMENT for anything that is not a packet as above.
absl::StatusOr<Packet> ReceivePacket(int socket, absl::Time deadline = absl::InfiniteFuture());

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_PACKET_H_
