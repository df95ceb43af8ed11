#include "cli/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/check.h"

namespace warpsmith {

StopSignals::StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  fd_.Reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  WS_CHECK(fd_.valid());
}

std::optional<int> StopSignals::Await(absl::Duration timeout) {
  pollfd waiting = {fd_.get(), POLLIN, 0};
  poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace warpsmith
