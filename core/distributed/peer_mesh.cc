#include "core/distributed/peer_mesh.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/distributed/peer_socket.h"

namespace warpsmith {

absl::StatusOr<std::vector<UniqueFd>> ConnectPeerMesh(const ProcessGroupEnvironment& environment,
                                                      TellRanks tell, const PeerMeshOptions& options) {
  const absl::Time began = absl::Now(), deadline = began + options.timeout;
  const int rank = environment.rank;
  ASSIGN_OR_RETURN(PeerListener listener, PeerListener::Open(environment));
  ASSIGN_OR_RETURN(const std::vector<std::string> told, tell(FormatPeerAddress(listener.address())));
  WS_CHECK(static_cast<int>(told.size()) >= rank) << told.size() << " addresses for rank " << rank;
  std::vector<UniqueFd> peers(environment.world_size);
  for (int peer = 0; peer < rank; ++peer) {
    const WaitLines waiting(absl::StrCat("a connection to rank ", peer), options.timeout, options.lines);
    ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(told[peer]));
    ASSIGN_OR_RETURN(peers[peer], CallPeer(peer, address, rank, deadline - absl::Now()));
  }
  absl::Time line_due = began + options.lines.interval;
  for (int missing = environment.world_size - rank - 1; missing > 0;) {
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError("higher ranks did not connect in time; see their logs");
    }
    if (now >= line_due) {
      options.lines.say(WaitLine(MissingRanks(peers, rank), now - began, options.timeout));
      line_due = now + options.lines.interval;
    }
    ASSIGN_OR_RETURN(std::optional<PeerCaller> caller,
                     listener.Accept(std::min(deadline, line_due), options.interrupt_fd));
    if (!caller.has_value() || peers[caller->rank].valid()) continue;
    peers[caller->rank] = std::move(caller->fd);
    --missing;
  }
  return peers;
}

std::string MissingRanks(const std::vector<UniqueFd>& peers, int rank) {
  constexpr size_t kNamedMax = 8;
  std::vector<std::string> names;
  for (size_t peer = static_cast<size_t>(rank) + 1; peer < peers.size(); ++peer) {
    if (!peers[peer].valid()) names.push_back(absl::StrCat(peer));
  }
  const size_t num_missing = names.size();
  names.resize(std::min(num_missing, kNamedMax));
  const std::string more =
      num_missing > kNamedMax ? absl::StrCat(" and ", num_missing - kNamedMax, " more") : std::string();
  return absl::StrCat(num_missing == 1 ? "rank " : "ranks ", absl::StrJoin(names, ", "), more,
                      num_missing == 1 ? ", which is to connect" : ", which are to connect");
}

}  // namespace warpsmith
