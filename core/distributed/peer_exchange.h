// The one primitive of the TCP communicator: send to and receive from all peers at once.
#ifndef WARPSMITH_CORE_DISTRIBUTED_PEER_EXCHANGE_H_
#define WARPSMITH_CORE_DISTRIBUTED_PEER_EXCHANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// What goes to one peer and what is expected of it. Memory belongs to the caller until Exchange returns.
struct PeerTransfer {
  const void* send = nullptr;
  int64_t send_bytes = 0;
  void* receive = nullptr;
  int64_t receive_bytes = 0;
};

// Place of an exchange in the order of all exchanges; peers must be at the same place.
struct ExchangeTag {
  int64_t sequence = 0;  // of the collective
  int32_t operation = 0;
  int32_t step = 0;  // within the collective
};

// Transfers with every peer at the same time, so no order of calls can deadlock. `peers` and `transfers` are
// by rank; entries with an invalid descriptor (this rank) are skipped. Returns when all bytes have gone and
// come, or when `interrupt_fd` becomes readable (ABORTED). UNAVAILABLE: a peer closed its connection.
// INTERNAL: a peer is at another place, or sends another number of bytes than expected.
absl::Status Exchange(absl::Span<const UniqueFd> peers, absl::Span<const PeerTransfer> transfers,
                      ExchangeTag tag, int interrupt_fd);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PEER_EXCHANGE_H_
