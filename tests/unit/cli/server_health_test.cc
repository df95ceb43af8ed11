#include "cli/server_health.h"

#include <signal.h>

#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace warpsmith {
namespace {

TEST_CASE("A server serves once it runs, and no longer when it has gone") {
  ServerProcess server("warpsmith-hash-grader", {});
  REQUIRE_FALSE(server.address().empty());
  CHECK(IsServing(server.address(), absl::Seconds(10)));
  REQUIRE(server.Stop(SIGTERM, absl::Seconds(10)) == 0);
  CHECK_FALSE(IsServing(server.address(), absl::Milliseconds(100)));
}

TEST_CASE("Nobody serves where nobody listens") {
  CHECK_FALSE(IsServing("unix:/nonexistent/socket", absl::Milliseconds(100)));
}

}  // namespace
}  // namespace warpsmith
