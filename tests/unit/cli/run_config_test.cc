#include "cli/run_config.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::StatusOr<RunConfig> Read(const std::string& text, const std::vector<std::string>& assignments = {}) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "small.yaml";
  REQUIRE(WriteFileAtomically(path, text).ok());
  return ReadRunConfig(path, assignments);
}

TEST_CASE("A run's folder is named after it unless it says otherwise") {
  CHECK(Read("trainer: {}\n")->run_directory == "runs/run");
  CHECK(Read("run:\n  name: small\n")->run_directory == "runs/small");
  CHECK(Read("run:\n  directory: /tmp/x\n")->run_directory == "/tmp/x");
}

TEST_CASE("The configurations in the tree are read") {
  for (const char* path : {"configs/demo.yaml", "configs/smoke.yaml"}) {
    INFO(path);
    CHECK(ReadRunConfig(path, {}).ok());
  }
}

TEST_CASE("Assignments come before the file") {
  CHECK(Read("trainer:\n  num_processes: 2\n")->num_trainers == 2);
  CHECK(Read("trainer:\n  num_processes: 2\n", {"trainer.num_processes=3"})->num_trainers == 3);
}

TEST_CASE("A section that nobody knows is an error with its line") {
  const absl::Status status = Read("trainer: {}\ntrianer: {}\n").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("small.yaml:2") && Catch::Contains("trianer"));
}

TEST_CASE("A number of trainers that is none is an error") {
  CHECK(absl::IsInvalidArgument(Read("trainer:\n  num_processes: 0\n").status()));
}

}  // namespace
}  // namespace warpsmith
