#include "core/distributed/tcp_communicator.h"

#include <functional>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/support/catch.h"
#include "tests/support/free_port.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {
namespace {

// Runs `work` once a rank, each on its own thread with its own communicator, and returns the statuses by
// rank. A rank whose work fails ends without a word, as if it were killed.
std::vector<absl::Status> RunCommunicators(int size, absl::Duration deadline,
                                           const std::function<absl::Status(Communicator&)>& work) {
  return RunRanks(size, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
    ASSIGN_OR_RETURN(const auto communicator,
                     CreateTcpCommunicator(environment, control.get(), {.deadline = deadline}));
    const absl::Status status = work(*communicator);
    if (status.ok()) control->Leave(status);
    return status;
  });
}

std::vector<float> RandomFloats(int rank, int64_t count) {
  std::mt19937 generator(7 + rank);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<float> SumInRankOrder(int size, int64_t count) {
  std::vector<float> sum = RandomFloats(0, count);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> part = RandomFloats(rank, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return sum;
}

constexpr CollectiveLabel kLabel{"numbers", "test"};

}  // namespace

TEST_CASE("a sum over ranks is added in rank order, to the bit, for any number of elements") {
  for (const int size : {1, 2, 5}) {
    CHECK(AllOk(RunCommunicators(size, absl::Seconds(30), [&](Communicator& communicator) {
      for (const int64_t count : {0, 1, 2, 7, 100003}) {
        std::vector<float> values = RandomFloats(communicator.rank(), count);
        const auto status = communicator.AllReduceSum(values.data(), count, ElementType::kFloat32, kLabel);
        if (!status.ok()) return status;
        if (values != SumInRankOrder(size, count)) return absl::InternalError("other bits");
      }
      return absl::OkStatus();
    })));
  }
}

TEST_CASE("float64 and int64 are summed as such") {
  CHECK(AllOk(RunCommunicators(3, absl::Seconds(30), [](Communicator& communicator) -> absl::Status {
    double fraction = 0.1 * (communicator.rank() + 1);
    int64_t large = (int64_t{1} << 60) + communicator.rank();
    const auto first = communicator.AllReduceSum(&fraction, 1, ElementType::kFloat64, kLabel);
    if (!first.ok()) return first;
    const auto second = communicator.AllReduceSum(&large, 1, ElementType::kInt64, kLabel);
    const bool right = fraction == 0.1 + 0.2 + 0.1 * 3 && large == 3 * (int64_t{1} << 60) + 3;
    return second.ok() && !right ? absl::InternalError("wrong sum") : second;
  })));
}

TEST_CASE("a broadcast from any rank and an all-gather reach everybody") {
  CHECK(AllOk(RunCommunicators(4, absl::Seconds(30), [](Communicator& communicator) -> absl::Status {
    for (int root = 0; root < 4; ++root) {
      int64_t value = communicator.rank() == root ? 100 + root : 0;
      const auto status = communicator.Broadcast(&value, sizeof(value), root, kLabel);
      if (!status.ok() || value != 100 + root) return absl::InternalError(status.ToString());
    }
    const int32_t own = communicator.rank() * 11;
    std::vector<int32_t> all(4);
    const auto status = communicator.AllGather(&own, all.data(), sizeof(own), kLabel);
    if (!status.ok() || all != std::vector<int32_t>{0, 11, 22, 33}) return absl::InternalError("gather");
    return communicator.Barrier(kLabel);
  })));
}

TEST_CASE("a rank that dies is named to the others at once, with the collective they were in") {
  const auto statuses =
      RunCommunicators(3, absl::Seconds(60), [](Communicator& communicator) -> absl::Status {
        if (communicator.rank() == 1) return absl::CancelledError("killed");
        return communicator.Barrier({"epoch", "update"});
      });
  for (const int survivor : {0, 2}) {
    INFO(statuses[survivor].ToString());
    CHECK(absl::IsUnavailable(statuses[survivor]));
    CHECK(Contains(statuses[survivor], "barrier \"epoch\" (#0, phase update, 0 bytes)"));
    CHECK(Contains(statuses[survivor], "rank 1 of 3 is lost: it closed its connection"));
  }
}

TEST_CASE("a rank that does not come makes the others fail at their deadline, and they stay failed") {
  const auto statuses =
      RunCommunicators(2, absl::Milliseconds(700), [](Communicator& communicator) -> absl::Status {
        if (communicator.rank() == 1) {
          // Stays alive past rank 0's deadline without calling the collective.
          absl::Status aborted = communicator.Barrier({"first", "test"});
          if (!aborted.ok()) return aborted;
          std::this_thread::sleep_for(std::chrono::milliseconds(1500));
          return absl::OkStatus();
        }
        const auto first = communicator.Barrier({"first", "test"});
        if (!first.ok()) return first;
        float value = 1;
        const auto late = communicator.AllReduceSum(&value, 1, ElementType::kFloat32, {"gradient", "update"});
        const auto again = communicator.Barrier({"other", "test"});
        return late == again ? late : absl::InternalError("the first error was not kept");
      });
  INFO(statuses[0].ToString());
  CHECK(absl::IsDeadlineExceeded(statuses[0]));
  CHECK(Contains(statuses[0], "all_reduce \"gradient\" (#1, phase update, 4 bytes)"));
}

TEST_CASE("ranks in different collectives find out instead of exchanging nonsense") {
  const auto statuses =
      RunCommunicators(2, absl::Seconds(30), [](Communicator& communicator) -> absl::Status {
        int64_t value = 1;
        if (communicator.rank() == 0) return communicator.Broadcast(&value, 8, 0, kLabel);
        return communicator.AllReduceSum(&value, 1, ElementType::kInt64, kLabel);
      });
  const bool told = Contains(statuses[0], "lost step") || Contains(statuses[1], "lost step");
  CHECK(told);
  CHECK_FALSE(statuses[0].ok());
  CHECK_FALSE(statuses[1].ok());
}

TEST_CASE("Abort from another thread ends a waiting collective with its reason") {
  const auto statuses =
      RunCommunicators(2, absl::Seconds(60), [](Communicator& communicator) -> absl::Status {
        if (communicator.rank() == 1) {
          int64_t ready = 0;
          const auto status = communicator.Broadcast(&ready, 8, 0, kLabel);
          if (!status.ok()) return status;
          return communicator.Barrier(kLabel);
        }
        int64_t ready = 1;
        const auto status = communicator.Broadcast(&ready, 8, 0, kLabel);
        if (!status.ok()) return status;
        communicator.Abort(absl::CancelledError("the user pressed ctrl-c"));
        return communicator.Barrier(kLabel);
      });
  CHECK(absl::IsCancelled(statuses[0]));
  CHECK_FALSE(statuses[1].ok());
}

TEST_CASE("a restart meets over a store that still holds what the attempt before wrote") {
  const int port = FreePort();
  c10d::TCPStoreOptions options{
      .port = static_cast<std::uint16_t>(port), .isServer = true, .waitWorkers = false};
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  for (const int restart_count : {0, 1, 2}) {
    const auto statuses = RunRanks(2, [&](ProcessGroupEnvironment environment) -> absl::Status {
      environment.master_port = port;
      environment.agent_store = true;
      environment.restart_count = restart_count;
      ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
      ASSIGN_OR_RETURN(const auto communicator, CreateTcpCommunicator(environment, control.get(), {}));
      const absl::Status status = communicator->Barrier(kLabel);
      control->Leave(status);
      return status;
    });
    CHECK(AllOk(statuses));
  }
}

TEST_CASE("a collective whose peer never comes ends when the control plane loses that rank, not later") {
  const ControlPlaneOptions quick{.heartbeat_interval = absl::Milliseconds(50),
                                  .silence_max = absl::Milliseconds(600)};
  const auto statuses = RunRanks(3, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    // Rank 1 lives on, with all its connections open, but is not heard of.
    const bool mute = environment.rank == 1;
    const ControlPlaneOptions options =
        mute ? ControlPlaneOptions{.heartbeat_interval = absl::Hours(1)} : quick;
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment, options));
    control->Say("dying");
    ASSIGN_OR_RETURN(const auto communicator,
                     CreateTcpCommunicator(environment, control.get(), {.deadline = absl::Hours(1)}));
    RETURN_IF_ERROR(communicator->Barrier(kLabel));
    if (mute) std::this_thread::sleep_for(std::chrono::seconds(2));
    return mute ? absl::OkStatus() : communicator->Barrier({"epoch", "update"});
  });
  for (const int survivor : {0, 2}) {
    INFO(statuses[survivor].ToString());
    CHECK(absl::IsUnavailable(statuses[survivor]));
    CHECK(Contains(statuses[survivor], "barrier \"epoch\" (#1, phase update, 0 bytes) was ended"));
    CHECK(Contains(statuses[survivor], "rank 1 of 3 is lost: it was silent for"));
    CHECK(Contains(statuses[survivor], "it was dying"));
  }
}

TEST_CASE("a communicator cannot be met by a rank that is lost, and the others do not wait for it") {
  const auto statuses = RunRanks(3, [](const ProcessGroupEnvironment& environment) -> absl::Status {
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment));
    if (environment.rank == 2) {
      // Dies after it has told its address, so the others expect its call.
      return control->AllGather("127.0.0.1 1", "addresses").status();
    }
    return CreateTcpCommunicator(environment, control.get(), {.meeting_timeout = absl::Minutes(5)}).status();
  });
  for (const int survivor : {0, 1}) {
    INFO(statuses[survivor].ToString());
    CHECK(absl::IsUnavailable(statuses[survivor]));
    CHECK(Contains(statuses[survivor], "rank 2 of 3 is lost"));
  }
}

}  // namespace warpsmith
