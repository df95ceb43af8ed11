#include "cli/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("Signals arrive as values, and none when there was none") {
  StopSignals signals;
  CHECK_FALSE(signals.Await(absl::ZeroDuration()).has_value());
  kill(getpid(), SIGTERM);
  CHECK(signals.Await(absl::Seconds(10)) == SIGTERM);
  kill(getpid(), SIGINT);
  CHECK(signals.Await(absl::Seconds(10)) == SIGINT);
  CHECK_FALSE(signals.Await(absl::ZeroDuration()).has_value());
}

}  // namespace
}  // namespace warpsmith
