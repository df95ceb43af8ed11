#include "cli/config_check.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/child_process.h"
#include "cli/scratch_directory.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// In the order of their sections: each prints its own as YAML, so that all together are one file.
constexpr const char* kPrograms[] = {"warpsmith-train", "warpsmith-rollout", "warpsmith-reward"};

constexpr int kExitFaulty = 1;
constexpr absl::Duration kTimeout = absl::Minutes(2);  // loading LibTorch takes a second or so
constexpr absl::Duration kSignalSlice = absl::Milliseconds(100);

absl::StatusOr<LaunchedProcess> StartCheck(const ConfigCheck& check, const std::string& program,
                                           const std::filesystem::path& output) {
  Command command{
      .name = program,
      .arguments = {(check.binaries / program).string(), "--check", "--config", check.config.string()},
      .log_path = output};
  for (const std::string& assignment : check.assignments) {
    command.arguments.insert(command.arguments.end(), {"--set", assignment});
  }
  return LaunchedProcess::Start(command);
}

absl::StatusOr<int> AwaitCheck(LaunchedProcess* child, StopSignals* signals) {
  for (absl::Duration waited; waited < kTimeout; waited += kSignalSlice) {
    if (const std::optional<int> status = child->AwaitEnd(kSignalSlice)) return *status;
    if (signals->Await(absl::ZeroDuration()).has_value()) return absl::CancelledError("stopped by a signal");
  }
  return absl::InternalError(
      absl::StrCat(child->name(), " --check did not end within ", absl::FormatDuration(kTimeout)));
}

// Sections that two programs read have the same faults in both.
void AddNewLines(const std::string& text, std::vector<std::string>* lines) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    if (std::find(lines->begin(), lines->end(), line) == lines->end()) lines->push_back(line);
  }
}

}  // namespace

absl::StatusOr<std::string> ResolveConfig(const ConfigCheck& check, StopSignals* signals) {
  ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create());
  std::vector<LaunchedProcess> children;
  for (const char* const program : kPrograms) {
    ASSIGN_OR_RETURN(LaunchedProcess child, StartCheck(check, program, scratch.path() / program));
    children.push_back(std::move(child));
  }
  std::string yaml;
  std::vector<std::string> faults;
  for (LaunchedProcess& child : children) {
    ASSIGN_OR_RETURN(const int status, AwaitCheck(&child, signals));
    ASSIGN_OR_RETURN(const std::string text, ReadFile(scratch.path() / child.name()));
    if (status != 0 && status != kExitFaulty) {
      return absl::InternalError(absl::StrCat(child.name(), " --check ended with ",
                                              DescribeExitStatus(status), "; it said: ", text));
    }
    if (status == kExitFaulty) AddNewLines(text, &faults);
    yaml += text;
  }
  if (faults.empty()) return yaml;
  return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

int RunConfigCheck(const ConfigCheck& check, StopSignals* signals) {
  const absl::StatusOr<std::string> yaml = ResolveConfig(check, signals);
  (yaml.ok() ? std::cout << *yaml : std::cerr << yaml.status().message() << "\n") << std::flush;
  return yaml.ok() ? 0 : 1;
}

}  // namespace warpsmith
