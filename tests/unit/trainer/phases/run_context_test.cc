// What is on disk when a checkpoint is: fsync is watched by a definition that takes precedence over
// the C library's.
#include "trainer/phases/run_context.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/distributed/ranks.h"
#include "tests/unit/trainer/policy_batch.h"

namespace {

// Paths in the order in which they were synced. The tests of this program sync from one thread.
std::vector<std::string>& Synced() {
  static std::vector<std::string> paths;
  return paths;
}

}  // namespace

extern "C" int fsync(int fd) {
  std::error_code ignored;
  Synced().push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored).string());
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace warpsmith {

TEST_CASE("both logs are on disk before the checkpoint that names their sizes") {
  TemporaryDirectory directory;
  const Configuration configuration;
  const Prompts* const no_prompts = nullptr;
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  CheckpointStore checkpoints(directory.path() / "checkpoints", 1, {});
  const auto policy = MakePolicy();
  RunProgress progress;
  auto log = RunLog::Open(directory.path(), progress);
  REQUIRE(log.ok());
  RunContext context{.configuration = configuration,
                     .prompts = *no_prompts,
                     .control = *control,
                     .communicator = *communicator,
                     .checkpoints = checkpoints,
                     .policy = *policy,
                     .progress = progress,
                     .log = log->get(),
                     .start = absl::Now()};
  REQUIRE((*log)->WriteMetrics("grpo", 1, {{"reward", 1}}).ok());
  Synced().clear();
  REQUIRE(SaveCheckpoint(context).ok());
  const auto position = [&](const std::string& part) {
    return std::find_if(Synced().begin(), Synced().end(),
                        [&](const std::string& path) { return path.find(part) != std::string::npos; });
  };
  const auto checkpoint = position("/checkpoints");
  REQUIRE(checkpoint != Synced().end());
  CHECK(position("/metrics.jsonl") < checkpoint);
  CHECK(position("/transitions.jsonl") < checkpoint);
  CHECK(std::find(Synced().begin(), checkpoint, directory.path().string()) < checkpoint);  // their names
  CHECK(progress.metrics_bytes == (*log)->metrics_bytes());
}

TEST_CASE("three steps in a row without a finite gradient end the run, two and a sound one do not") {
  const Configuration configuration;
  const Prompts* const no_prompts = nullptr;
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  CheckpointStore checkpoints("nowhere", 1, {});
  const auto policy = MakePolicy();
  RunProgress progress;
  RunContext context{.configuration = configuration,
                     .prompts = *no_prompts,
                     .control = *control,
                     .communicator = *communicator,
                     .checkpoints = checkpoints,
                     .policy = *policy,
                     .progress = progress,
                     .start = absl::Now()};
  const double infinite = std::numeric_limits<double>::infinity();
  const auto note = [&](double norm) {
    return NoteGradientNorm(context, norm, "trainer.grpo.learning_rate");
  };
  for (const double norm : {infinite, std::nan(""), 1.0, infinite, infinite}) CHECK(note(norm).ok());
  const absl::Status status = note(infinite);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("3 steps in a row") && Catch::Contains("lower trainer.grpo.learning_rate"));
}

TEST_CASE("whichever rank is asked to stop, all save a checkpoint and stop") {
  for (const int asked : {-1, 0, 1}) {
    TemporaryDirectory directory;
    const Configuration configuration;
    const Prompts* const no_prompts = nullptr;
    const std::atomic<bool> stop = true;
    const auto statuses = RunControlRanks(2, {}, [&](ControlPlane& control) -> absl::Status {
      const auto communicator = MakeLoneCommunicator(control);
      CheckpointStore checkpoints(directory.path() / "checkpoints", 1, {});
      const auto policy = MakePolicy();
      RunProgress progress;
      std::unique_ptr<RunLog> log;
      if (control.rank() == 0) {
        ASSIGN_OR_RETURN(log, RunLog::Open(directory.path(), progress));
      }
      RunContext context{.configuration = configuration,
                         .prompts = *no_prompts,
                         .control = control,
                         .communicator = *communicator,
                         .checkpoints = checkpoints,
                         .policy = *policy,
                         .progress = progress,
                         .log = log.get(),
                         .stop = control.rank() == asked ? &stop : nullptr,
                         .start = absl::Now()};
      return StopIfAsked(context);
    });
    INFO("asked " << asked);
    for (const absl::Status& status : statuses) {
      INFO(status);
      CHECK(status.code() == (asked < 0 ? absl::StatusCode::kOk : absl::StatusCode::kCancelled));
    }
    CHECK(std::filesystem::exists(directory.path() / "checkpoints") == (asked >= 0));
  }
}

}  // namespace warpsmith
