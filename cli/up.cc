#include "cli/up.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cstdlib>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/config_check.h"
#include "cli/process_commands.h"
#include "cli/run_config.h"
#include "cli/scratch_directory.h"
#include "cli/server_health.h"
#include "cli/supervisor.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A port that was free a moment ago. Rank 0 binds it soon; losing it to somebody else in between ends the run
// with its message, and the next `up` picks another.
absl::StatusOr<int> FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0) {
    return ErrnoStatus("cannot find a free port on", "127.0.0.1");
  }
  return ntohs(address.sin_port);
}

absl::Status MakeDirectory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot make the folder ", path.string(), ": ", error.message()));
}

// The options with a file of the whole configuration in `directory` instead of the one that they name: checked
// before anything starts, every default in it. So the trainer stores a complete one with the run. Assignments
// are in it too; repeated on the command lines they show in ps which run a process belongs to.
absl::StatusOr<UpOptions> Resolve(const UpOptions& options, const std::filesystem::path& directory,
                                  StopSignals* signals) {
  ASSIGN_OR_RETURN(const std::string yaml, ResolveConfig({.binaries = ExecutableDirectory(),
                                                          .config = options.config,
                                                          .assignments = options.assignments},
                                                         signals));
  UpOptions resolved = options;
  resolved.config = directory / "config.yaml";
  RETURN_IF_ERROR(WriteFileAtomically(resolved.config, yaml));
  return resolved;
}

absl::StatusOr<RunLayout> LayOut(const UpOptions& options, const std::filesystem::path& socket_directory) {
  ASSIGN_OR_RETURN(const RunConfig config, ReadRunConfig(options.config, options.assignments));
  RunLayout layout{.binaries = ExecutableDirectory(),
                   .config = options.config,
                   .assignments = options.assignments,
                   .trainer_flags = options.trainer_flags,
                   .run_directory = config.run_directory,
                   .socket_directory = socket_directory,
                   .resume = options.resume,
                   .overwrite = options.overwrite,
                   .num_trainers = config.num_trainers};
  if (layout.num_trainers > 1) {
    ASSIGN_OR_RETURN(layout.rendezvous_port, FreePort());
  }
  return layout;
}

absl::Status StartAll(const RunLayout& layout, Supervisor* supervisor) {
  RETURN_IF_ERROR(MakeDirectory(layout.run_directory / "logs"));
  LogInfo(absl::StrCat("logs are in ", (layout.run_directory / "logs").string()));
  RETURN_IF_ERROR(supervisor->StartServer(RewardServer(layout)));
  RETURN_IF_ERROR(supervisor->StartServer(RolloutServer(layout)));
  for (const Command& command : TrainerCommands(layout)) {
    RETURN_IF_ERROR(supervisor->StartTrainer(command));
  }
  return absl::OkStatus();
}

// One process that calls no server; its exit status.
absl::StatusOr<int> RunAlone(const Command& command, StopSignals* signals) {
  Supervisor supervisor({}, signals);
  RETURN_IF_ERROR(supervisor.StartTrainer(command));
  return supervisor.Run();
}

absl::StatusOr<int> Up(const UpOptions& options, StopSignals* signals) {
  ASSIGN_OR_RETURN(const ScratchDirectory sockets, ScratchDirectory::Create());
  ASSIGN_OR_RETURN(const UpOptions resolved, Resolve(options, sockets.path(), signals));
  ASSIGN_OR_RETURN(const RunLayout layout, LayOut(resolved, sockets.path()));
  ASSIGN_OR_RETURN(const int refusal, RunAlone(TrainerDryRun(layout), signals));
  if (refusal != 0) return refusal;  // the trainer has said why
  Supervisor supervisor({.is_serving = IsServing}, signals);
  RETURN_IF_ERROR(StartAll(layout, &supervisor));
  const int status = supervisor.Run();
  if (status != 0) LogError(absl::StrCat("the run ended with ", DescribeExitStatus(status)));
  return status;
}

absl::StatusOr<int> TrainerAlone(const UpOptions& options, const std::string& mode, StopSignals* signals) {
  ASSIGN_OR_RETURN(const RunLayout layout, LayOut(options, {}));
  return RunAlone(TrainerMode(layout, mode), signals);
}

int Report(const absl::StatusOr<int>& status) {
  if (status.ok()) return *status;
  LogError(std::string(status.status().message()));
  return 1;
}

}  // namespace

int RunUp(const UpOptions& options, StopSignals* signals) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Report(Up(options, signals));
}

int RunTrainerMode(const UpOptions& options, const std::string& mode, StopSignals* signals) {
  return Report(TrainerAlone(options, mode, signals));
}

int RunServe(const std::vector<std::string>& flags, StopSignals* signals) {
  return Report(RunAlone(ServeCommand(ExecutableDirectory(), flags), signals));
}

}  // namespace warpsmith
