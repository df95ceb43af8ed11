#include "trainer/run_log.h"

#include <limits>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("a figure that does not exist and a text that says nothing are null in a line of metrics") {
  const TemporaryDirectory directory;
  auto log = RunLog::Open(directory.path(), {});
  REQUIRE(log.ok());
  const double none = std::numeric_limits<double>::quiet_NaN();
  REQUIRE((*log)->WriteMetrics("grpo", 3, {{"loss", none}, {"num_tokens", 0}}, {{"no_update", "why"}}).ok());
  REQUIRE((*log)->WriteMetrics("grpo", 4, {{"loss", 0.5}}, {{"no_update", ""}}).ok());
  CHECK(ReadFile(directory.path() / "metrics.jsonl").value() ==
        "{\"phase\":\"grpo\",\"step\":3,\"loss\":null,\"num_tokens\":0.0,\"no_update\":\"why\"}\n"
        "{\"phase\":\"grpo\",\"step\":4,\"loss\":0.5,\"no_update\":null}\n");
}

}  // namespace warpsmith
