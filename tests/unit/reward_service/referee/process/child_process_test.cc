#include "reward_service/referee/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/forked_child.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

absl::Time Soon() { return absl::Now() + kPatience; }

// Waits until it has ended, and leaves it to be reaped.
void AwaitZombie(pid_t pid) {
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
}

TEST_CASE("a child is who the kernel says, once it has said hello") {
  const auto child = ForkSilentChild([](int socket, int) {
    (void)SendPacket(socket, {{"op", "hello"}, {"sender", 1}});
    StaySilent(socket);
  });
  CHECK(child->pid() == -1);
  REQUIRE(child->AwaitHello(Soon()).ok());
  CHECK(child->pid() > 1);
  CHECK(StateOf(child->pid()) != 'T');
  CHECK(child->num_threads() == 1);
  CHECK(child->AwaitHello(absl::InfinitePast()).ok());
}

TEST_CASE("another first packet than hello, or none in time, is no child") {
  auto failed = ForkSilentChild([](int socket, int) {
    (void)SendPacket(socket, {{"op", "failed"}, {"error", "no namespaces"}});
    StaySilent(socket);
  });
  for (int again = 0; again < 2; ++again)
    CHECK(failed->AwaitHello(Soon()) ==
          absl::InternalError("a process could not be confined: no namespaces"));
  const pid_t pid = failed->pid();
  REQUIRE(pid > 0);
  failed.reset();
  CHECK(kill(pid, 0) == -1);  // it is reaped
  const auto silent = ForkSilentChild([](int socket, int) { StaySilent(socket); });
  CHECK(absl::IsDeadlineExceeded(silent->AwaitHello(absl::Now())));
}

TEST_CASE("a child that found no memory to be confined in is told apart from one that cannot be confined") {
  const auto failed = ForkSilentChild([](int socket, int) {
    (void)SendPacket(socket,
                     {{"op", "failed"}, {"error", "OSError: the GPU cannot be opened: out of memory"}});
    StaySilent(socket);
  });
  CHECK(absl::IsResourceExhausted(failed->AwaitHello(Soon())));
}

TEST_CASE("whoever ends a child waits no longer than he can") {
  const auto child = ForkChild([](int socket, int) { StaySilent(socket); });
  REQUIRE(child->Stop().ok());
  CHECK(child->EndBy(Soon()).ok());
  CHECK(child->AwaitEnd().signal == SIGKILL);
  CHECK(child->EndBy(absl::InfinitePast()).ok());
}

TEST_CASE("an asked child runs until its answer, and stands still before and after") {
  const auto child = ForkChild([](int socket, int) { Count(socket); });
  REQUIRE(child->Stop().ok());
  CHECK(StateOf(child->pid()) == 'T');
  for (int number = 0; number < 3; ++number) {
    const auto timed = child->AskOnTheClock({{"op", "run"}}, kPatience);
    REQUIRE(timed.ok());
    CHECK(timed->answer.fields["number"] == number);
    CHECK(timed->seconds > 0);
    CHECK(timed->stop_seconds > 0);
    CHECK(child->stopped());
    CHECK(StateOf(child->pid()) == 'T');
  }
}

TEST_CASE("what is done between an answer and the stop finds the child running, and is on no clock") {
  const auto child = ForkChild([](int socket, int) { Count(socket); });
  REQUIRE(child->Stop().ok());
  constexpr double kSeconds = 2;  // more than a stop takes, which is given up after one
  char state = '\0';
  const auto timed = child->AskOnTheClock({{"op", "run"}}, kPatience, [&] {
    state = StateOf(child->pid());
    absl::SleepFor(absl::Seconds(kSeconds));
  });
  REQUIRE(timed.ok());
  CHECK(state != 'T');
  CHECK(timed->seconds + timed->stop_seconds < kSeconds);
  CHECK(StateOf(child->pid()) == 'T');
}

TEST_CASE("a child that does not answer is stopped at its limit") {
  const auto child = ForkChild([](int socket, int) { StaySilent(socket); });
  REQUIRE(child->Stop().ok());
  const auto timed = child->AskOnTheClock({{"op", "run"}}, absl::Milliseconds(20));
  CHECK(absl::IsDeadlineExceeded(timed.status()));
  CHECK(child->stopped());
  CHECK(StateOf(child->pid()) == 'T');
}

TEST_CASE("a late or second answer is taken for that to the next question") {
  const auto child = ForkChild([](int socket, int) {
    AwaitPacket(socket);
    (void)SendPacket(socket, {{"number", 1}});
    (void)SendPacket(socket, {{"number", 2}});
    StaySilent(socket);
  });
  REQUIRE(child->Stop().ok());
  CHECK(child->AskOnTheClock({{"op", "run"}}, kPatience)->answer.fields["number"] == 1);
  CHECK(child->AskOnTheClock({{"op", "run"}}, kPatience)->answer.fields["number"] == 2);
}

TEST_CASE("descriptors in an answer are refused, and closed") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto child = ForkChild([&](int socket, int) {
    AwaitPacket(socket);
    (void)SendPacket(socket, {{"op", "done"}}, {writer.get()});
    writer.Reset();
    StaySilent(socket);
  });
  writer.Reset();
  CHECK(absl::IsInvalidArgument(child->Ask({{"op", "run"}}, {}, Soon()).status()));
  char byte = 0;
  CHECK(read(reader.get(), &byte, 1) == 0);  // nobody can write any more
}

TEST_CASE("what a child has printed is taken away when it is stopped, so much at a time") {
  const auto child = ForkChild([](int socket, int output) {
    fcntl(output, F_SETPIPE_SZ, 1 << 20);
    const std::string text(4096, 'x');
    while (write(output, text.data(), text.size()) > 0) {
    }
    (void)SendPacket(socket, {{"op", "printed"}});
    for (int num_unread = 0;;) {
      AwaitPacket(socket);
      ioctl(output, FIONREAD, &num_unread);
      (void)SendPacket(socket, {{"num_unread", num_unread}});
    }
  });
  REQUIRE(child->Receive(Soon()).ok());
  REQUIRE(child->Stop().ok());
  const auto num_unread = [&] {
    return child->AskOnTheClock({{"op", "count"}}, kPatience)->answer.fields["num_unread"].get<int>();
  };
  const int at_first = num_unread(), later = num_unread();
  CHECK(later < at_first);
  CHECK(later > 0);
}

TEST_CASE("how a child ended is told: its code, its signal, and that it still runs") {
  const auto ending = [](auto life) {
    const auto child = ForkChild(life);
    CHECK(absl::IsUnavailable(child->Receive(Soon()).status()));
    return child->AwaitEnd();
  };
  const Ending exited = ending([](int, int) { _exit(3); });
  CHECK(exited.ended);
  CHECK(DescribeEnding(exited) == "exited with code 3");
  const Ending killed = ending([](int, int) { (void)kill(getpid(), SIGSEGV); });
  CHECK(killed.signal == SIGSEGV);
  CHECK(DescribeEnding(killed) == "was ended by signal 11 (Segmentation fault)");
  CHECK(DescribeEnding(ending([](int socket, int) {
          close(socket);
          pause();
        })) == "closed its socket");
}

TEST_CASE("a child that was stopped can end") {
  const auto child = ForkChild([](int socket, int) { StaySilent(socket); });
  REQUIRE(child->Stop().ok());
  REQUIRE(kill(child->pid(), SIGTERM) == 0);  // which waits until it is continued
  CHECK(child->AwaitEnd().signal == SIGTERM);
}

TEST_CASE("a child's own memory is counted while it has it") {
  constexpr size_t kBytes = size_t{64} << 20;
  const auto child = ForkSilentChild([](int socket, int) {
    (void)SendPacket(socket, {{"op", "hello"}});
    (void)AwaitPacket(socket);
    std::vector<char> memory(kBytes, 1);
    (void)SendPacket(socket, {{"last", memory.back()}});
    (void)AwaitPacket(socket);
  });
  REQUIRE(child->AwaitHello(Soon()).ok());
  const int64_t before = child->anonymous_bytes();
  CHECK(before > 0);
  REQUIRE(child->Ask({}, {}, Soon()).ok());
  CHECK(child->anonymous_bytes() - before > static_cast<int64_t>(kBytes) * 9 / 10);
  (void)child->Ask({}, {}, Soon());
  child->AwaitEnd();
  CHECK(child->anonymous_bytes() == 0);
}

TEST_CASE("nothing can be done with a child that is gone") {
  const auto child = ForkChild([](int, int) {});
  AwaitZombie(child->pid());
  CHECK(absl::IsUnavailable(child->Stop()));
  CHECK(absl::IsUnavailable(child->Send({{"op", "run"}})));
  CHECK(child->AwaitEnd().ended);
  CHECK(child->num_threads() == 0);
  CHECK_FALSE(child->AwaitEnd().ended);  // nor a second time
}

// A process of the child's keeps its socket open, as one of a candidate can.
TEST_CASE("a crash that was told is worth more than that the child is gone") {
  const auto told = [](const char* op) {
    const auto child = ForkChild([op](int socket, int) {
      if (fork() == 0) StaySilent(socket);
      (void)SendPacket(socket, {{"op", op}});
    });
    AwaitZombie(child->pid());
    return child->AskOnTheClock({{"op", "run"}}, kPatience).status();
  };
  CHECK(told("crash").ok());
  CHECK(absl::IsUnavailable(told("done")));
}

TEST_CASE("a child ends with whoever holds it, stopped or not") {
  for (const bool stopped : {false, true}) {
    auto child = ForkChild([](int socket, int) { StaySilent(socket); });
    const pid_t pid = child->pid();
    if (stopped) REQUIRE(child->Stop().ok());
    child.reset();
    CHECK(waitpid(pid, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
  }
}

TEST_CASE("CPU time is used up by the kernel's own signal, or near the limit by the last one") {
  constexpr double kLimit = 10;
  CHECK(UsedUp({.ended = true, .signal = SIGXCPU}, kLimit));
  CHECK(UsedUp({.ended = true, .signal = SIGKILL, .cpu_seconds = 9.7}, kLimit));
  CHECK_FALSE(UsedUp({.ended = true, .signal = SIGKILL, .cpu_seconds = 1}, kLimit));
  CHECK_FALSE(UsedUp({.ended = true, .signal = SIGSEGV, .cpu_seconds = 9.7}, kLimit));
  CHECK_FALSE(UsedUp({.ended = true, .exit_code = 1, .cpu_seconds = 20}, kLimit));
}

TEST_CASE("code is checked only where somebody said what is permitted") {
  const auto child = ForkChild([](int socket, int) { StaySilent(socket); });
  CHECK(absl::IsFailedPrecondition(child->CheckCode()));
}

}  // namespace
}  // namespace warpsmith
