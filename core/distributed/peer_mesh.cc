#include "core/distributed/peer_mesh.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr size_t kTokenBytes = 16;

// What a caller says first.
struct Greeting {
  std::array<char, kTokenBytes> token;
  int32_t rank;
};

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

absl::StatusOr<AddressList> Resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = socket_type;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot resolve \"", host, "\": ", gai_strerror(error)));
  }
  return AddressList(list);
}

// The numeric address of this machine on the way to the master. Nothing is sent: connecting a datagram socket
// only chooses a route.
absl::StatusOr<std::string> OwnAddress(const ProcessGroupEnvironment& environment) {
  ASSIGN_OR_RETURN(const AddressList list,
                   Resolve(environment.master_address, environment.master_port, SOCK_DGRAM));
  const UniqueFd probe(socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (!probe.valid() || connect(probe.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return ErrnoStatus("no route to", environment.master_address);
  }
  char host[NI_MAXHOST];
  const int error =
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) return absl::InternalError(absl::StrCat("getnameinfo: ", gai_strerror(error)));
  return std::string(host);
}

struct Listener {
  UniqueFd fd;
  int port = 0;
};

absl::StatusOr<Listener> Listen(const std::string& host, int backlog) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(host, 0, SOCK_STREAM));
  Listener listener{.fd = UniqueFd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (!listener.fd.valid() || bind(listener.fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(listener.fd.get(), backlog) != 0 ||
      getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return ErrnoStatus("cannot listen at", host);
  }
  listener.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                    : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return listener;
}

// Bounds every blocking read and write of the greeting.
void SetSocketTimeout(int fd, absl::Duration timeout) {
  const timeval limit = absl::ToTimeval(std::max(timeout, absl::Milliseconds(1)));
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void SetNoDelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

// `words` begins with the peer's host and port.
absl::StatusOr<UniqueFd> CallPeer(int peer, const std::vector<std::string>& words, const Greeting& greeting,
                                  absl::Time deadline) {
  int port = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &port)) {
    return absl::InternalError(
        absl::StrCat("rank ", peer, " told a malformed address of ", words.size(), " words"));
  }
  ASSIGN_OR_RETURN(const AddressList list, Resolve(words[0], port, SOCK_STREAM));
  UniqueFd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("cannot make a socket for", words[0]);
  SetSocketTimeout(fd.get(), deadline - absl::Now());
  SetNoDelay(fd.get());
  if (connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      send(fd.get(), &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting)) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach rank ", peer, " at ", words[0], " port ", port, ": ", strerror(errno)));
  }
  return fd;
}

// Accepts one caller; an invalid descriptor when it did not know the token, or none called until `look_up`, which is
// no error.
absl::StatusOr<std::pair<int, UniqueFd>> AcceptPeer(const Listener& listener, const Greeting& own,
                                                    int world_size, absl::Time deadline, absl::Time look_up,
                                                    int interrupt_fd) {
  pollfd waiting[] = {{.fd = listener.fd.get(), .events = POLLIN, .revents = 0},
                      {.fd = interrupt_fd, .events = POLLIN, .revents = 0}};
  const absl::Duration timeout = absl::Ceil(std::min(deadline, look_up) - absl::Now(), absl::Milliseconds(1));
  const int64_t timeout_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(timeout));
  if (poll(waiting, 2, static_cast<int>(timeout_ms)) <= 0) {
    if (absl::Now() < deadline) return std::pair<int, UniqueFd>(-1, UniqueFd());
    return absl::DeadlineExceededError("higher ranks did not connect in time; see their logs");
  }
  if (waiting[1].revents != 0) return absl::AbortedError("interrupted while higher ranks were to connect");
  UniqueFd fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot accept at port", absl::StrCat(listener.port));
  SetSocketTimeout(fd.get(), std::min(deadline - absl::Now(), absl::Seconds(5)));
  SetNoDelay(fd.get());
  Greeting greeting{};
  const bool known = recv(fd.get(), &greeting, sizeof(greeting), MSG_WAITALL) == sizeof(greeting) &&
                     greeting.token == own.token && own.rank < greeting.rank && greeting.rank < world_size;
  if (!known) return std::pair<int, UniqueFd>(-1, UniqueFd());
  return std::pair<int, UniqueFd>(greeting.rank, std::move(fd));
}

// "ranks 1, 3, which are to connect": those above `rank` that have not.
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

// A new token, in hexadecimal digits.
absl::StatusOr<std::string> DrawToken() {
  std::array<char, kTokenBytes> token;
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return ErrnoStatus("cannot read", "random bytes");
  }
  return absl::BytesToHexString({token.data(), token.size()});
}

}  // namespace

absl::StatusOr<std::vector<UniqueFd>> ConnectPeerMesh(const ProcessGroupEnvironment& environment,
                                                      TellRanks tell, const PeerMeshOptions& options) {
  const absl::Time began = absl::Now(), deadline = began + options.timeout;
  const int rank = environment.rank;
  ASSIGN_OR_RETURN(const std::string host, OwnAddress(environment));
  ASSIGN_OR_RETURN(const Listener listener, Listen(host, environment.world_size));
  std::string own = absl::StrCat(host, " ", listener.port);
  if (rank == 0) {
    ASSIGN_OR_RETURN(const std::string token, DrawToken());
    absl::StrAppend(&own, " ", token);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> told, tell(own));
  std::vector<std::vector<std::string>> words;  // by rank: host, port, and the token of rank 0
  for (const std::string& text : told) words.push_back(absl::StrSplit(text, ' '));
  if (words.empty() || words[0].size() != 3) return absl::InternalError("rank 0 told a malformed address");
  const std::string token = absl::HexStringToBytes(words[0][2]);
  if (token.size() != kTokenBytes) return absl::InternalError("rank 0 told a malformed mesh token");
  Greeting greeting{.token = {}, .rank = rank};
  std::copy(token.begin(), token.end(), greeting.token.begin());

  const bool star = options.shape == MeshShape::kStar;
  const int num_lower = star ? std::min(rank, 1) : rank;
  const int num_higher = star && rank > 0 ? 0 : environment.world_size - rank - 1;
  WS_CHECK(static_cast<int>(words.size()) >= num_lower) << words.size() << " addresses for rank " << rank;
  std::vector<UniqueFd> peers(environment.world_size);
  for (int peer = 0; peer < num_lower; ++peer) {
    const WaitLines waiting(absl::StrCat("a connection to rank ", peer), options.timeout, options.lines);
    ASSIGN_OR_RETURN(peers[peer], CallPeer(peer, words[peer], greeting, deadline));
  }
  absl::Time line_due = began + options.lines.interval;
  for (int missing = num_higher; missing > 0;) {
    if (const absl::Time now = absl::Now(); now >= line_due) {
      options.lines.say(WaitLine(MissingRanks(peers, rank), now - began, options.timeout));
      line_due = now + options.lines.interval;
    }
    ASSIGN_OR_RETURN(auto caller, AcceptPeer(listener, greeting, environment.world_size, deadline, line_due,
                                             options.interrupt_fd));
    if (!caller.second.valid() || peers[caller.first].valid()) continue;
    peers[caller.first] = std::move(caller.second);
    --missing;
  }
  return peers;
}

}  // namespace warpsmith
