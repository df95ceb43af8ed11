#include "core/distributed/peer_socket.h"

#include <optional>

#include "absl/time/clock.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

PeerListener Open() { return PeerListener::Open({.rank = 0, .world_size = 3, .master_port = 1}).value(); }

std::optional<PeerCaller> Accept(PeerListener& listener) {
  return listener.Accept(absl::Now() + absl::Seconds(5), -1).value();
}

UniqueFd Call(const PeerAddress& address, int rank) {
  return CallPeer(0, address, rank, absl::Seconds(5)).value();
}

}  // namespace

TEST_CASE("an address becomes text and back, and other text is refused") {
  const PeerAddress address = Open().address();
  const auto parsed = ParsePeerAddress(FormatPeerAddress(address));
  REQUIRE(parsed.ok());
  CHECK(parsed->host == address.host);
  CHECK(parsed->port == address.port);
  CHECK(parsed->token == address.token);
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1 80 00", "127.0.0.1 x 00112233445566778899aabbccddeeff"}) {
    CHECK(absl::IsInternal(ParsePeerAddress(text).status()));
  }
}

TEST_CASE("a listener takes higher ranks that show its token, and says when it has met all") {
  PeerListener listener = Open();
  const UniqueFd fd = Call(listener.address(), 2);
  const auto caller = Accept(listener);
  REQUIRE(caller.has_value());
  CHECK(caller->rank == 2);
  CHECK_FALSE(HasClosed(caller->fd));
  REQUIRE(WelcomePeer(caller->fd, 0, listener.address()).ok());
  CHECK(TakeWelcome(fd, 0, listener.address()).ok());
}

TEST_CASE("a listener passes over a foreign token and a rank that is none") {
  PeerListener listener = Open();
  PeerAddress foreign = listener.address();
  foreign.token[0] ^= 1;
  const UniqueFd unknown = Call(foreign, 1), itself = Call(listener.address(), 0),
                 outside = Call(listener.address(), 3);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(Accept(listener).has_value());
}

TEST_CASE("what is no rank's answer, or none, is no welcome") {
  PeerListener listener = Open();
  const UniqueFd fd = Call(listener.address(), 1);
  auto caller = Accept(listener);
  REQUIRE(WelcomePeer(caller->fd, 1, listener.address()).ok());  // as an echo would
  CHECK(absl::IsUnavailable(TakeWelcome(fd, 0, listener.address())));
  caller.reset();
  CHECK(HasClosed(fd));
  CHECK(absl::IsUnavailable(TakeWelcome(fd, 0, listener.address())));
}

}  // namespace warpsmith
