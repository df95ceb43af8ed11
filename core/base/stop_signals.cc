#include "core/base/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

namespace warpsmith {

sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int AwaitStopSignal(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  return signal;
}

void StopThisProcess() { kill(getpid(), SIGTERM); }

}  // namespace warpsmith
