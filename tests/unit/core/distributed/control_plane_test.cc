#include "core/distributed/control_plane.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {
namespace {

const ControlPlaneOptions kPatient{};

// Heartbeats so fast that a test can wait for silence.
const ControlPlaneOptions kQuick{.heartbeat_interval = absl::Milliseconds(20),
                                 .silence_max = absl::Milliseconds(600)};

void Sleep(absl::Duration duration) { absl::SleepFor(duration); }

}  // namespace

TEST_CASE("a process alone agrees with itself, without a network") {
  const auto control = ControlPlane::Create({});
  REQUIRE(control.ok());
  CHECK(*(*control)->Broadcast("batch", "batch") == "batch");
  CHECK(*(*control)->AllGather("own", "parts") == std::vector<std::string>{"own"});
  CHECK((*control)->Barrier("end").ok());
}

TEST_CASE("a broadcast brings rank 0's bytes to every rank, and a gathering everybody's in rank order") {
  const std::string large(3'000'000, 'x');
  CHECK(AllOk(RunControlRanks(4, kPatient, [&](ControlPlane& control) -> absl::Status {
    for (const std::string& bytes : {std::string(), std::string("small"), large}) {
      const std::string own = control.rank() == 0 ? bytes : "not this";
      ASSIGN_OR_RETURN(const std::string got, control.Broadcast(own, "batch"));
      if (got != bytes) return absl::InternalError("other bytes");
    }
    ASSIGN_OR_RETURN(const auto parts,
                     control.AllGather(std::string(control.rank(), 'a' + control.rank()), "parts"));
    if (parts != std::vector<std::string>{"", "b", "cc", "ddd"}) return absl::InternalError("other parts");
    return control.Barrier("end");
  })));
}

TEST_CASE("ranks wait for one that is busy for longer than a silence may last") {
  CHECK(AllOk(RunControlRanks(3, kQuick, [](ControlPlane& control) -> absl::Status {
    if (control.rank() == 0) Sleep(3 * kQuick.silence_max);
    RETURN_IF_ERROR(control.Barrier("collect"));
    if (control.rank() == 2) Sleep(3 * kQuick.silence_max);
    return control.Barrier("update");
  })));
}

TEST_CASE("ranks that have met rank 0 wait for one that comes later than a silence may last") {
  CHECK(AllOk(RunRanks(3, [](const ProcessGroupEnvironment& environment) -> absl::Status {
    if (environment.rank == 2) Sleep(3 * kQuick.silence_max);
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment, kQuick));
    const absl::Status status = control->Barrier("first");
    control->Leave(status);
    return status;
  })));
}

TEST_CASE("ranks that wait for a late one say for which and until when") {
  std::array<SaidLines, 4> said;
  const std::string of_store = "waiting for the rendezvous store of rank 0 at 127.0.0.1:";
  CHECK(AllOk(RunRanks(4, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    SaidLines& own = said[environment.rank];
    if (environment.rank == 0) said[1].Await(2);
    if (environment.rank == 2) said[0].Await(2, "waiting for rank");
    ASSIGN_OR_RETURN(const auto control,
                     ControlPlane::Create(environment, {.lines = own.Options(absl::Milliseconds(100))}));
    const absl::Status status = control->Barrier("first");
    control->Leave(status);
    return status;
  })));
  CHECK_THAT(said[1].all().front(), Catch::StartsWith(of_store) && Catch::EndsWith("s of at most 10m"));
  const std::vector<std::string> of_rank_0 = said[0].all();
  const auto line = std::find_if(of_rank_0.begin(), of_rank_0.end(), [](const std::string& one) {
    return one.compare(0, 16, "waiting for rank") == 0;
  });
  CHECK_THAT(*line, Catch::Matches("waiting for rank.* 2\\b.*to connect, for .* of at most 10m"));
}

TEST_CASE("a rendezvous port in use is told with what chooses another") {
  const UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(taken.get(), generic, size) == 0);
  REQUIRE(listen(taken.get(), 1) == 0);
  REQUIRE(getsockname(taken.get(), generic, &size) == 0);
  const int port = ntohs(address.sin_port);
  const absl::Status status =
      ControlPlane::Create({.rank = 0, .world_size = 2, .master_port = port}).status();
  INFO(status.ToString());
  CHECK(absl::IsUnavailable(status));
  CHECK(Contains(status, absl::StrCat("cannot serve the rendezvous store at 127.0.0.1:", port)));
  CHECK(Contains(status, "choose another by MASTER_PORT where you have set it"));
}

TEST_CASE("exchanges of the start that last are said, and later ones are not") {
  SaidLines said;
  const char* const line = "waiting for rank 0 to reach \"start\"";
  size_t num_at_start = 0;
  const ControlPlaneOptions options{.lines = said.Options(absl::Milliseconds(20))};
  CHECK(AllOk(RunRanks(2, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    ASSIGN_OR_RETURN(const auto control,
                     ControlPlane::Create(environment, environment.rank == 0 ? kPatient : options));
    if (environment.rank == 0) said.Await(2, line);
    RETURN_IF_ERROR(control->Barrier("start"));
    if (environment.rank == 1) num_at_start = said.all().size();
    control->Say("working");
    if (environment.rank == 0) Sleep(absl::Milliseconds(100));
    const absl::Status status = control->Barrier("step");
    control->Leave(status);
    return status;
  })));
  CHECK(said.all().size() == num_at_start);
  CHECK_THAT(said.all().back(), Catch::StartsWith(line));
}

TEST_CASE("a rank that closes without a word is named to all, with what it said last") {
  for (const int lost : {0, 1, 2}) {
    const auto statuses = RunRanks(3, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
      ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
      control->Say(absl::StrCat("busy as rank ", environment.rank));
      RETURN_IF_ERROR(control->Barrier("first"));
      if (environment.rank == lost) return absl::OkStatus();  // destroyed without Leave, as if killed
      return control->Barrier("second");
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      INFO(statuses[rank].ToString());
      CHECK(absl::IsUnavailable(statuses[rank]));
      CHECK(Contains(statuses[rank], absl::StrCat("rank ", lost, " of 3 is lost: it closed its connection")));
      CHECK(Contains(statuses[rank], "when last heard of, 0."));
      CHECK(Contains(statuses[rank], absl::StrCat("ago, it was busy as rank ", lost)));
    }
  }
}

TEST_CASE("a rank that is silent too long is lost, though its connection is open") {
  // Rank 1 meets the others and stops: its beats are an hour apart.
  const auto statuses = RunRanks(3, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    ControlPlaneOptions options = kQuick;
    if (environment.rank == 1) options = {.heartbeat_interval = absl::Hours(1)};
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment, options));
    if (environment.rank == 1) Sleep(4 * kQuick.silence_max);
    return control->Barrier("first");
  });
  for (const int rank : {0, 2}) {
    INFO(statuses[rank].ToString());
    CHECK(absl::IsUnavailable(statuses[rank]));
    CHECK(Contains(statuses[rank], "rank 1 of 3 is lost: it was silent for 0.6 s"));
  }
}

TEST_CASE("a rank that ends with an error ends the others, and they say whose error it was") {
  for (const int failing : {0, 2}) {
    const auto statuses = RunControlRanks(3, kPatient, [&](ControlPlane& control) -> absl::Status {
      if (control.rank() == failing) return absl::ResourceExhaustedError("the disk is full");
      return control.Barrier("checkpoint");
    });
    for (int rank = 0; rank < 3; ++rank) {
      INFO(statuses[rank].ToString());
      CHECK(Contains(statuses[rank], "the disk is full"));
      if (rank == failing) continue;
      CHECK(absl::IsAborted(statuses[rank]));
      CHECK(Contains(statuses[rank], absl::StrCat("rank ", failing, " of 3 ended with an error")));
    }
  }
}

TEST_CASE("a rank that is asked to stop stops the others, and none of them calls that an error") {
  for (const int stopped : {0, 2}) {
    const auto statuses = RunControlRanks(3, kPatient, [&](ControlPlane& control) -> absl::Status {
      if (control.rank() == stopped) return absl::CancelledError("asked to stop while waiting");
      return control.Barrier("batch");
    });
    for (int rank = 0; rank < 3; ++rank) {
      INFO(statuses[rank].ToString());
      CHECK(absl::IsCancelled(statuses[rank]));
      CHECK(Contains(statuses[rank], "asked to stop while waiting"));
      if (rank != stopped)
        CHECK(Contains(statuses[rank], absl::StrCat("rank ", stopped, " of 3 has stopped")));
    }
  }
}

TEST_CASE("a rank that ends well is not lost, but cannot be waited for") {
  const auto statuses = RunControlRanks(3, kPatient, [](ControlPlane& control) -> absl::Status {
    if (control.rank() == 1) return absl::OkStatus();
    Sleep(absl::Milliseconds(200));
    RETURN_IF_ERROR(control.status());
    return control.Barrier("evaluation");
  });
  CHECK(statuses[1].ok());
  for (const int rank : {0, 2}) {
    INFO(statuses[rank].ToString());
    CHECK(absl::IsInternal(statuses[rank]));
    CHECK(
        Contains(statuses[rank], "ranks have lost step: rank 1 has ended, rank 0 is at \"evaluation\" (#0)"));
  }
}

TEST_CASE("ranks in different exchanges find out") {
  const auto statuses = RunControlRanks(2, kPatient, [](ControlPlane& control) -> absl::Status {
    return control.Barrier(control.rank() == 0 ? "batch" : "decision");
  });
  for (const absl::Status& status : statuses) {
    INFO(status.ToString());
    CHECK(Contains(status, "rank 1 is at \"decision\" (#0), rank 0 is at \"batch\" (#0)"));
  }
}

TEST_CASE("the cause of a failed connection is the lost rank, of another failure the failure itself") {
  const auto statuses = RunRanks(3, [](const ProcessGroupEnvironment& environment) -> absl::Status {
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
    RETURN_IF_ERROR(control->Barrier("first"));
    if (environment.rank == 1) return absl::OkStatus();
    if (environment.rank == 0) {
      const absl::Status full = absl::ResourceExhaustedError("the disk is full");
      if (control->CauseOf(full) != full) return absl::InternalError("not the failure itself");
    }
    return control->CauseOf(absl::UnavailableError("rank 0 closed its connection"));
  });
  for (const int rank : {0, 2}) {
    INFO(statuses[rank].ToString());
    CHECK(Contains(statuses[rank], "rank 1 of 3 is lost"));
  }
}

TEST_CASE("a listener hears once of a break, and never after its end") {
  std::atomic<int> heard = 0;
  const auto statuses = RunControlRanks(2, kPatient, [&](ControlPlane& control) -> absl::Status {
    if (control.rank() == 1) {
      RETURN_IF_ERROR(control.Barrier("first"));
      return absl::CancelledError("asked to stop");
    }
    {
      const BreakListener forgotten(&control, [&] { heard += 100; });
    }
    const BreakListener listener(&control, [&] { ++heard; });
    RETURN_IF_ERROR(control.Barrier("first"));
    return control.Barrier("second");
  });
  CHECK(absl::IsCancelled(statuses[0]));
  CHECK(heard == 1);
}

}  // namespace warpsmith
