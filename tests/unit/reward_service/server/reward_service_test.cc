#include "reward_service/server/reward_service.h"

#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Catch::Contains;

// A run file with this text.
struct RunFile {
  explicit RunFile(const std::string& text) {
    std::ofstream(directory.path() / "run.yaml") << text;
    flags.config = (directory.path() / "run.yaml").string();
  }
  std::string Refusal() const { return std::string(CheckRewardService(flags).status().message()); }

  TemporaryDirectory directory;
  RewardServiceFlags flags;
};

TEST_CASE("a section that is in order comes back with every default") {
  const RunFile file("reward_service:\n  queue_capacity: 7\n");
  const absl::StatusOr<std::string> resolved = CheckRewardService(file.flags);
  REQUIRE(resolved.ok());
  CHECK_THAT(*resolved, Contains("queue_capacity: 7") && Contains("formula: \"warpsmith-"));
}

TEST_CASE("overrides of the command line count") {
  RunFile file("reward_service:\n  queue_capacity: 7\n");
  file.flags.overrides = {"reward_service.queue_capacity=9"};
  CHECK_THAT(*CheckRewardService(file.flags), Contains("queue_capacity: 9"));
  file.flags.overrides = {"reward_service.no_such_key=1"};
  CHECK_THAT(file.Refusal(), Contains("no_such_key"));
}

TEST_CASE("all faults of the section come at once, and that of the trainer's formula with them") {
  const RunFile file(
      "reward_service:\n  queue_capacity: none\n  num_lines: 1\ntrainer:\n  grpo:\n    formula: best-v9\n");
  CHECK_THAT(file.Refusal(), Contains("queue_capacity") && Contains("num_lines") && Contains("best-v9"));
}

TEST_CASE("a file that an option names is looked at, and the fault begins with its key") {
  const TemporaryDirectory directory;
  const std::string token = (directory.path() / "token").string();
  std::ofstream(token) << "short";
  const RunFile tenants("reward_service:\n  tenants:\n    lab: {token_file: " + token + "}\n");
  CHECK_THAT(tenants.Refusal(), Contains("reward_service.tenants: ") && Contains(token));
  const RunFile cores("reward_service:\n  lane_cores: [100000]\n");
  CHECK_THAT(cores.Refusal(), Contains("reward_service.lane_cores: ") && Contains("100000"));
}

TEST_CASE("no file of that name is an error that names it") {
  RewardServiceFlags flags;
  flags.config = "/no/such/run.yaml";
  CHECK_THAT(std::string(CheckRewardService(flags).status().message()), Contains("/no/such/run.yaml"));
}

TEST_CASE("the reference has every key, those of a tenant under NAME") {
  const std::string reference = RewardServiceReference();
  for (const char* key : {"formula", "queue_capacity", "lane_cores", "num_lanes", "NAME", "token_file"}) {
    CHECK_THAT(reference, Contains(key));
  }
}

}  // namespace
}  // namespace warpsmith
