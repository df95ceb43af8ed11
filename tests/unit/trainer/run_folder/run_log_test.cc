#include "trainer/run_folder/run_log.h"

#include <limits>

#include "absl/strings/str_cat.h"
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

TEST_CASE(
    "TensorBoard's events are cut back with the metrics, each event there once, however often a run goes "
    "on") {
  const TemporaryDirectory directory;
  const auto write = [](RunLog& log, int64_t step, double value) {
    REQUIRE(log.WriteMetrics("grpo", step, {{absl::StrCat("figure", step), value}}).ok());
  };
  RunProgress progress;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto log = RunLog::Open(directory.path(), progress).value();
    write(*log, attempt + 1, attempt);
    progress.metrics_bytes = log->metrics_bytes();
    write(*log, 90 + attempt, 0);  // after the checkpoint
  }
  RunLog::Open(directory.path(), progress).value();
  std::string events;
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() / "tensorboard")) {
    events += ReadFile(entry.path()).value();
    ++num_files;
  }
  CHECK(num_files == 1);
  const auto count = [&](const std::string& name) {
    int number = 0;
    for (size_t at = events.find(name); at != std::string::npos; at = events.find(name, at + 1)) ++number;
    return number;
  };
  for (const char* name : {"grpo/figure1", "grpo/figure2", "grpo/figure3"}) CHECK(count(name) == 1);
  CHECK(count("grpo/figure9") == 0);
}

}  // namespace warpsmith
