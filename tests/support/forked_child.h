// A child of a test as a referee has it, that does what a function says.
#ifndef WARPSMITH_TESTS_SUPPORT_FORKED_CHILD_H_
#define WARPSMITH_TESTS_SUPPORT_FORKED_CHILD_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/referee/process/child_process.h"

namespace warpsmith {

// `life(socket, output)` runs in the child, which exits with code 0 when it returns. It has said nothing yet.
template <typename Life>
std::unique_ptr<ChildProcess> ForkSilentChild(const Life& life) {
  auto pair = MakePacketPair();
  WS_CHECK(pair.ok());
  const int on = 1;
  WS_CHECK(setsockopt(pair->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
  int ends[2];
  WS_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  const pid_t pid = fork();
  WS_CHECK(pid >= 0);
  if (pid == 0) {
    pair->first.Reset();
    for (int signal = 1; signal < SIGRTMIN; ++signal)
      ::signal(signal, SIG_DFL);  // and not to the test's reporter
    life(pair->second.get(), writer.get());
    _exit(0);
  }
  return std::make_unique<ChildProcess>(std::move(pair->first), std::move(reader));
}

// As above, of a child that has said hello.
template <typename Life>
std::unique_ptr<ChildProcess> ForkChild(const Life& life) {
  auto child = ForkSilentChild([&](int socket, int output) {
    (void)SendPacket(socket, Make<child::Hello>());
    life(socket, output);
  });
  const absl::Status status = child->AwaitHello(absl::Now() + absl::Seconds(60));
  WS_CHECK(status.ok()) << status.ToString();
  return child;
}

// For a life: waits until somebody speaks, or has hung up: false.
inline bool AwaitPacket(int socket) { return ReceivePacket(socket).ok(); }
// For a life: does nothing until the referee hangs up.
inline void StaySilent(int socket) {
  while (AwaitPacket(socket)) {
  }
}
// For a life: answers each packet by the number of those before it.
inline void Count(int socket) {
  for (int number = 0; AwaitPacket(socket); ++number) (void)SendPacket(socket, {{"number", number}});
}

// The kernel's letter for what a process does: 'T' is stopped.
inline char StateOf(pid_t pid) {
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  WS_CHECK(stat.ok()) << stat.status().ToString();
  return stat->at(stat->rfind(')') + 2);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FORKED_CHILD_H_
