// A member's place in a group in which the first member sends memory to all others. Plain: both ends name it alike.
#ifndef WARPSMITH_CORE_DISTRIBUTED_BROADCAST_PLACE_H_
#define WARPSMITH_CORE_DISTRIBUTED_BROADCAST_PLACE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpsmith {

// Of a ncclUniqueId.
inline constexpr size_t kBroadcastIdBytes = 128;
// More members are a mistake of the sender's.
inline constexpr int kBroadcastRanksMax = 1024;

struct BroadcastPlace {
  // Drawn by the sender, another for every broadcast.
  std::string id;
  // Members, the sender among them, and which this one is; the sender is 0.
  int num_ranks = 0;
  int rank = 0;
};

// INVALID_ARGUMENT unless a receiver can have this place.
inline absl::Status CheckReceiverPlace(const BroadcastPlace& place) {
  if (place.id.size() != kBroadcastIdBytes) {
    return absl::InvalidArgumentError(absl::StrCat("The id of a broadcast has ", place.id.size(),
                                                   " bytes; give the ", kBroadcastIdBytes,
                                                   " that the sender has drawn"));
  }
  if (place.num_ranks < 2 || place.num_ranks > kBroadcastRanksMax) {
    return absl::InvalidArgumentError(absl::StrCat("A broadcast has ", place.num_ranks, " ranks; give 2 to ",
                                                   kBroadcastRanksMax, ", the sender among them"));
  }
  if (place.rank < 1 || place.rank >= place.num_ranks) {
    return absl::InvalidArgumentError(absl::StrCat("A receiver of a broadcast has rank ", place.rank,
                                                   "; give 1 to ", place.num_ranks - 1,
                                                   ", for the sender has 0"));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_BROADCAST_PLACE_H_
