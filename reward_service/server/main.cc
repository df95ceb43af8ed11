// warpsmith-reward: the reward service.
//
//   warpsmith-reward [--config FILE] [--set section.key=value]... [--address A]
//   warpsmith-reward [--config FILE] [--set section.key=value]... --check
//   warpsmith-reward --reference
#include <CLI/CLI.hpp>
#include <iostream>

#include "core/base/log.h"
#include "reward_service/server/reward_service.h"

int main(int argc, char** argv) {
  CLI::App app("Grades programs: compiles, checks, times, profiles and rewards them");
  warpsmith::RewardServiceFlags flags;
  app.add_option("--config", flags.config, "run file; its section reward_service counts")
      ->check(CLI::ExistingFile);
  app.add_option("--address", flags.address,
                 "host:port (port 0: any) or unix:path, instead of the run file's");
  app.add_option("--set", flags.overrides, "section.key=value, as if it stood in the run file");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  bool check = false, reference = false;
  app.add_flag("--check", check, "print the resolved section of the service, or every fault; no more");
  app.add_flag("--reference", reference, "print every key of that section with its meaning; no more");
  CLI11_PARSE(app, argc, argv);
  if (reference) {
    std::cout << warpsmith::RewardServiceReference() << std::flush;
    return 0;
  }
  if (check) {
    const absl::StatusOr<std::string> resolved = warpsmith::CheckRewardService(flags);
    (resolved.ok() ? std::cout << *resolved : std::cerr << resolved.status().message() << "\n") << std::flush;
    return resolved.ok() ? 0 : 1;
  }
  warpsmith::SetUpLogging("warpsmith-reward", flags.log_level);
  const absl::Status status = warpsmith::RunRewardService(flags);
  if (status.ok()) return 0;
  warpsmith::LogError(std::string(status.message()));
  return 1;
}
