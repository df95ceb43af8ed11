// How a program's loading ends where it does not load: by its own fault, or the machine's.
#include <memory>
#include <string>

#include "reward_service/referee/process/jail.h"
#include "tests/support/catch.h"
#include "tests/support/forked_child.h"

namespace warpsmith {
namespace {

absl::StatusOr<std::optional<Fault>> Begin(std::unique_ptr<ChildProcess> child, absl::Duration left,
                                           double cpu_seconds_max = 60) {
  const nlohmann::json one = {{{"code", 2}, {"bits", 32}, {"shape", {4}}}};
  const TaskLayout layout =
      *MakeLayout({{"inputs", one}, {"parameters", nlohmann::json::array()}, {"outputs", one}}, 1 << 20);
  Jail jail(std::move(child), *MakeBuffers(HostStore(), layout, CandidateKind::kNative), layout,
            {.cpu_seconds_max = cpu_seconds_max, .call_seconds_max = 60});
  return jail.Begin({.library_fd = 0, .source_fd = 0, .deadline = absl::Now() + left}, nullptr);
}

TEST_CASE("a program that does not load in the time that it was given is told that time") {
  const auto reason = [](absl::Duration left, double cpu_seconds_max) {
    const auto fault =
        Begin(ForkChild([](int socket, int) { StaySilent(socket); }), left, cpu_seconds_max)->value();
    CHECK(fault.verdict == v1::VERDICT_TIMEOUT);
    return fault.reason;
  };
  CHECK(reason(absl::Seconds(0.2), 60) == "no result after 0.2 s");
  CHECK(reason(absl::Seconds(60), 0.2 - 5) == "no result after 0.2 s");  // five more than of CPU time
}

TEST_CASE("a process that cannot be confined, or says no hello, is a failure of the machine") {
  const auto status = [](auto life) { return Begin(ForkSilentChild(life), absl::Seconds(0.2)).status(); };
  CHECK(absl::IsInternal(status([](int socket, int) {
    (void)SendPacket(socket, Make<child::Failed>({{child::Failed::error, "no namespaces"}}));
  })));
  CHECK(absl::IsDeadlineExceeded(status([](int socket, int) { StaySilent(socket); })));
}

}  // namespace
}  // namespace warpsmith
