#include "core/distributed/rank_meeting.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/distributed/peer_mesh.h"
#include "core/distributed/peer_socket.h"

namespace warpsmith {
namespace {

constexpr char kAddressKey[] = "control/address";  // of rank 0, in the store

// A host that is gone does not answer: its address may be that of an earlier attempt.
constexpr absl::Duration kCallTimeout = absl::Seconds(10);
// The store announces no new value, so a rank looks again this often.
constexpr absl::Duration kLookInterval = absl::Milliseconds(500);
// From an address that failed to the next look: rank 0 may be about to write another.
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);

struct Meeting {
  const ProcessGroupEnvironment& environment;
  absl::Time began;
  absl::Duration timeout;
  const WaitLineOptions& lines;

  absl::Time deadline() const { return began + timeout; }
  // In whole seconds, as lines of the log say it.
  absl::Duration left() const { return absl::Ceil(deadline() - absl::Now(), absl::Seconds(1)); }
};

bool AnyIsMissing(const std::vector<UniqueFd>& peers) {
  return std::any_of(peers.begin() + 1, peers.end(), [](const UniqueFd& peer) { return !peer.valid(); });
}

void DropClosed(std::vector<UniqueFd>& peers) {
  for (UniqueFd& peer : peers) {
    if (peer.valid() && HasClosed(peer)) peer.Reset();
  }
}

absl::StatusOr<MetRanks> MeetAsRankZero(const Meeting& meeting) {
  MetRanks met{.store = nullptr, .peers = std::vector<UniqueFd>(meeting.environment.world_size)};
  ASSIGN_OR_RETURN(met.store, RendezvousStore::Connect(meeting.environment, meeting.left(), meeting.lines));
  ASSIGN_OR_RETURN(PeerListener listener, PeerListener::Open(meeting.environment));
  RETURN_IF_ERROR(met.store->Set(kAddressKey, FormatPeerAddress(listener.address())));
  absl::Time line_due = meeting.began + meeting.lines.interval;
  while (AnyIsMissing(met.peers)) {
    const absl::Time now = absl::Now();
    if (now >= meeting.deadline()) {
      return absl::DeadlineExceededError(absl::StrCat("not all ranks met within ",
                                                      SecondsText(meeting.timeout), ": ",
                                                      MissingRanks(met.peers, 0), "; see their logs"));
    }
    if (now >= line_due) {
      meeting.lines.say(WaitLine(MissingRanks(met.peers, 0), now - meeting.began, meeting.timeout));
      line_due = now + meeting.lines.interval;
    }
    ASSIGN_OR_RETURN(std::optional<PeerCaller> caller,
                     listener.Accept(std::min(meeting.deadline(), line_due), /*interrupt_fd=*/-1));
    if (caller.has_value()) met.peers[caller->rank] = std::move(caller->fd);
    DropClosed(met.peers);
  }
  for (size_t rank = 1; rank < met.peers.size(); ++rank) {
    // The control plane reports a rank that has ended since.
    WelcomePeer(met.peers[rank], /*own_rank=*/0, listener.address()).IgnoreError();
  }
  return met;
}

// Waits until rank 0, which has accepted this rank, says that all have met. UNAVAILABLE: it ended before that, or
// another rank 0 has written its address.
absl::Status AwaitWelcome(const Meeting& meeting, RendezvousStore& store, const std::string& text,
                          const PeerAddress& address, const UniqueFd& fd) {
  const WaitLines waiting("rank 0 to have met all ranks", meeting.timeout, meeting.lines);
  while (meeting.left() > absl::ZeroDuration()) {
    pollfd answer = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    const auto timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(kLookInterval));
    if (poll(&answer, 1, timeout_ms) > 0) return TakeWelcome(fd, 0, address);
    ASSIGN_OR_RETURN(const std::string newest, store.Get(kAddressKey, "rank 0", meeting.left()));
    if (newest != text) return absl::UnavailableError("rank 0 has begun again, at another address");
  }
  return absl::DeadlineExceededError("rank 0 has not met all ranks");
}

absl::StatusOr<UniqueFd> CallRankZero(const Meeting& meeting, RendezvousStore& store) {
  ASSIGN_OR_RETURN(const std::string text, store.Get(kAddressKey, "rank 0", meeting.left()));
  ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(text));
  ASSIGN_OR_RETURN(UniqueFd fd,
                   CallPeer(0, address, meeting.environment.rank, std::min(meeting.left(), kCallTimeout)));
  RETURN_IF_ERROR(AwaitWelcome(meeting, store, text, address, fd));
  return fd;
}

// Calls the newest address until rank 0 says that all have met.
absl::StatusOr<MetRanks> FollowRankZero(const Meeting& meeting) {
  MetRanks met{.store = nullptr, .peers = std::vector<UniqueFd>(meeting.environment.world_size)};
  absl::Status failed;
  absl::Time line_due = meeting.began + meeting.lines.interval;
  while (meeting.left() > absl::ZeroDuration()) {
    if (const absl::Time now = absl::Now(); now >= line_due) {
      meeting.lines.say(
          WaitLine(absl::StrCat("rank 0 (", failed.message(), ")"), now - meeting.began, meeting.timeout));
      line_due = now + meeting.lines.interval;
    }
    // Anew each time: the rank 0 of an earlier attempt may have served it, and be gone.
    ASSIGN_OR_RETURN(met.store, RendezvousStore::Connect(meeting.environment, meeting.left(), meeting.lines));
    absl::StatusOr<UniqueFd> rank_zero = CallRankZero(meeting, *met.store);
    if (rank_zero.ok()) {
      met.peers[0] = *std::move(rank_zero);
      return met;
    }
    failed = rank_zero.status();
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kRetryInterval)));
  }
  return absl::DeadlineExceededError(absl::StrCat("rank 0 was not met within ", SecondsText(meeting.timeout),
                                                  ": ", failed.message(), "; see its log"));
}

}  // namespace

absl::StatusOr<MetRanks> MeetRanks(const ProcessGroupEnvironment& environment, absl::Duration timeout,
                                   const WaitLineOptions& lines) {
  const Meeting meeting{.environment = environment, .began = absl::Now(), .timeout = timeout, .lines = lines};
  return environment.rank == 0 ? MeetAsRankZero(meeting) : FollowRankZero(meeting);
}

}  // namespace warpsmith
