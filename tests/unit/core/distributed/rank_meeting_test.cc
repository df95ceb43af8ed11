#include "core/distributed/rank_meeting.h"

#include <poll.h>

#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/peer_socket.h"
#include "tests/support/catch.h"
#include "tests/support/free_port.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {
namespace {

constexpr char kAddressKey[] = "control/address";

// A launcher's store, which outlives the attempts.
class Agent {
 public:
  Agent() {
    c10d::TCPStoreOptions options{
        .port = static_cast<std::uint16_t>(port_), .isServer = true, .waitWorkers = false};
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  ProcessGroupEnvironment Rank(int rank, int world_size, int restart_count = 0) const {
    return {.rank = rank,
            .world_size = world_size,
            .master_port = port_,
            .agent_store = true,
            .restart_count = restart_count};
  }

  void Leave(const std::string& address) const {
    REQUIRE(RendezvousStore::Connect(Rank(0, 2), absl::Seconds(5)).value()->Set(kAddressKey, address).ok());
  }

 private:
  const int port_ = FreePort();
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

// Meets the other ranks and agrees with them once.
absl::Status Meet(const ProcessGroupEnvironment& environment) {
  ASSIGN_OR_RETURN(const auto control,
                   ControlPlane::Create(environment, {.meeting_timeout = absl::Seconds(20)}));
  const absl::Status status = control->Barrier("first");
  control->Leave(status);
  return status;
}

}  // namespace

TEST_CASE("ranks meet whose launchers have restarted another number of times") {
  CHECK(AllOk(RunRanks(3, [](ProcessGroupEnvironment environment) {
    environment.restart_count = (environment.rank + 1) % 3;
    return Meet(environment);
  })));
  const Agent agent;
  CHECK(AllOk(RunRanks(3, [&](const ProcessGroupEnvironment& environment) {
    return Meet(agent.Rank(environment.rank, 3, 2 - environment.rank));
  })));
}

TEST_CASE("an address that an earlier attempt left in the store is passed over") {
  const Agent agent;
  PeerListener silent = PeerListener::Open(agent.Rank(0, 2)).value();  // its rank 0 is about to be killed
  PeerAddress without_listener = silent.address();
  without_listener.port = FreePort();
  for (const PeerAddress& left : {without_listener, silent.address()}) {
    agent.Leave(FormatPeerAddress(left));
    absl::Status late = absl::UnknownError("not run");
    std::thread rank_1([&] { late = Meet(agent.Rank(1, 2, 1)); });
    absl::SleepFor(absl::Milliseconds(100));  // rank 1 reads the old address first, most of the time
    CHECK(Meet(agent.Rank(0, 2)).ToString() == "OK");
    rank_1.join();
    CHECK(late.ToString() == "OK");
  }
}

TEST_CASE("a rank that was started again while rank 0 waits takes its former place") {
  const Agent agent;
  std::vector<absl::Status> statuses(3);
  std::thread rank_0([&] { statuses[0] = Meet(agent.Rank(0, 3)); });
  const auto store = RendezvousStore::Connect(agent.Rank(1, 3), absl::Seconds(5)).value();
  const PeerAddress address =
      ParsePeerAddress(store->Get(kAddressKey, "rank 0", absl::Seconds(5)).value()).value();
  { const UniqueFd killed = CallPeer(0, address, 2, absl::Seconds(5)).value(); }
  const UniqueFd former = CallPeer(0, address, 1, absl::Seconds(5)).value();
  std::thread rank_1([&] { statuses[1] = Meet(agent.Rank(1, 3, 1)); });
  pollfd closed = {.fd = former.get(), .events = POLLIN, .revents = 0};
  CHECK(poll(&closed, 1, 10'000) == 1);  // rank 0 has given it up for the new one
  statuses[2] = Meet(agent.Rank(2, 3, 1));
  rank_0.join();
  rank_1.join();
  CHECK(AllOk(statuses));
}

TEST_CASE("ranks that wait at a rank 0 that ends go on to its successor") {
  const Agent agent;
  std::vector<absl::Status> statuses(3);
  absl::Status former;
  std::thread rank_0([&] {
    former = MeetRanks(agent.Rank(0, 3), absl::Milliseconds(300), {}).status();
    statuses[0] = Meet(agent.Rank(0, 3, 1));
  });
  std::thread rank_1([&] { statuses[1] = Meet(agent.Rank(1, 3)); });
  absl::SleepFor(absl::Milliseconds(400));
  statuses[2] = Meet(agent.Rank(2, 3, 1));
  rank_0.join();
  rank_1.join();
  CHECK(absl::IsDeadlineExceeded(former));
  CHECK(Contains(former, "rank 2, which is to connect"));
  CHECK(AllOk(statuses));
}

TEST_CASE("a rank 0 that never comes is waited for until the deadline, and what it left is told") {
  const Agent agent;
  PeerAddress left = PeerListener::Open(agent.Rank(0, 2)).value().address();
  agent.Leave(FormatPeerAddress(left));
  const absl::Status status = MeetRanks(agent.Rank(1, 2), absl::Milliseconds(400), {}).status();
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(Contains(status, "cannot reach rank 0"));
}

}  // namespace warpsmith
