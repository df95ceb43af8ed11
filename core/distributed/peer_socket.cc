#include "core/distributed/peer_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Holds what a caller says first, and what WelcomePeer answers: its own rank tells it from an echo.
struct Greeting {
  PeerToken token;
  int32_t rank;
};

// A caller that connects says who it is at once.
constexpr absl::Duration kGreetingTimeout = absl::Seconds(5);

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

// Bounds every blocking call on the socket, connecting among them.
void SetSocketTimeout(int fd, absl::Duration timeout) {
  const timeval limit = absl::ToTimeval(std::max(timeout, absl::Milliseconds(1)));
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void SetNoDelay(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

absl::Status SendGreeting(int fd, const Greeting& greeting) {
  if (send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) == sizeof(greeting)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot greet: ", strerror(errno)));
}

}  // namespace

std::string FormatPeerAddress(const PeerAddress& address) {
  const absl::string_view token(address.token.data(), address.token.size());
  return absl::StrCat(address.host, " ", address.port, " ", absl::BytesToHexString(token));
}

absl::StatusOr<PeerAddress> ParsePeerAddress(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  PeerAddress address;
  const std::string token = words.size() == 3 ? absl::HexStringToBytes(words[2]) : "";
  if (token.size() != address.token.size() || !absl::SimpleAtoi(words[1], &address.port)) {
    return absl::InternalError(absl::StrCat("malformed address of a rank, of ", words.size(), " words"));
  }
  address.host = words[0];
  std::copy(token.begin(), token.end(), address.token.begin());
  return address;
}

absl::StatusOr<PeerListener> PeerListener::Open(const ProcessGroupEnvironment& environment) {
  PeerAddress address;
  ASSIGN_OR_RETURN(address.host, OwnAddress(environment));
  ASSIGN_OR_RETURN(const AddressList list, Resolve(address.host, 0, SOCK_STREAM));
  UniqueFd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (!fd.valid() || bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(fd.get(), environment.world_size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return ErrnoStatus("cannot listen at", address.host);
  }
  address.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  if (getrandom(address.token.data(), address.token.size(), 0) != std::ssize(address.token)) {
    return ErrnoStatus("cannot read", "random bytes");
  }
  return PeerListener(environment, std::move(fd), std::move(address));
}

PeerListener::PeerListener(const ProcessGroupEnvironment& environment, UniqueFd fd, PeerAddress address)
    : rank_(environment.rank),
      world_size_(environment.world_size),
      fd_(std::move(fd)),
      address_(std::move(address)) {}

absl::StatusOr<std::optional<PeerCaller>> PeerListener::Accept(absl::Time until, int interrupt_fd) {
  pollfd waiting[] = {{.fd = fd_.get(), .events = POLLIN, .revents = 0},
                      {.fd = interrupt_fd, .events = POLLIN, .revents = 0}};
  const absl::Duration timeout = absl::Ceil(until - absl::Now(), absl::Milliseconds(1));
  const int64_t timeout_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(timeout));
  if (poll(waiting, 2, static_cast<int>(timeout_ms)) <= 0) return std::nullopt;
  if (waiting[1].revents != 0) return absl::AbortedError("interrupted while higher ranks were to connect");
  UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot accept at port", absl::StrCat(address_.port));
  SetSocketTimeout(fd.get(), kGreetingTimeout);
  SetNoDelay(fd.get());
  Greeting greeting{};
  const bool is_known = recv(fd.get(), &greeting, sizeof(greeting), MSG_WAITALL) == sizeof(greeting) &&
                        greeting.token == address_.token && rank_ < greeting.rank &&
                        greeting.rank < world_size_;
  if (!is_known) return std::nullopt;
  return PeerCaller{.rank = greeting.rank, .fd = std::move(fd)};
}

absl::StatusOr<UniqueFd> CallPeer(int peer, const PeerAddress& address, int own_rank,
                                  absl::Duration timeout) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(address.host, address.port, SOCK_STREAM));
  UniqueFd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("cannot make a socket for", address.host);
  SetSocketTimeout(fd.get(), timeout);
  SetNoDelay(fd.get());
  if (connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      !SendGreeting(fd.get(), {.token = address.token, .rank = own_rank}).ok()) {
    return absl::UnavailableError(absl::StrCat("cannot reach rank ", peer, " at ", address.host, " port ",
                                               address.port, ": ", strerror(errno)));
  }
  return fd;
}

absl::Status WelcomePeer(const UniqueFd& caller, int own_rank, const PeerAddress& own_address) {
  return SendGreeting(caller.get(), {.token = own_address.token, .rank = own_rank});
}

absl::Status TakeWelcome(const UniqueFd& fd, int peer, const PeerAddress& address) {
  Greeting greeting{};
  const ssize_t count = recv(fd.get(), &greeting, sizeof(greeting), MSG_WAITALL);
  if (count == sizeof(greeting) && greeting.token == address.token && greeting.rank == peer) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("rank ", peer, " at ", address.host, " port ", address.port,
                   count > 0 ? " answered what no rank says" : " ended before all ranks had met"));
}

bool HasClosed(const UniqueFd& fd) {
  char byte = 0;
  const ssize_t count = recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace warpsmith
