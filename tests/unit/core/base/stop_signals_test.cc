#include "core/base/stop_signals.h"

#include <pthread.h>

#include <catch2/catch.hpp>
#include <thread>

namespace warpsmith {
namespace {

TEST_CASE("any thread can have the process stopped, and the one that waits hears it") {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const sigset_t signals = BlockStopSignals();
  CHECK(sigismember(&signals, SIGTERM) == 1);
  CHECK(sigismember(&signals, SIGINT) == 1);
  std::thread other(StopThisProcess);
  CHECK(AwaitStopSignal(signals) == SIGTERM);
  other.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace warpsmith
