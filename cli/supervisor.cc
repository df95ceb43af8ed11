#include "cli/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int kLogLinesShown = 20;
constexpr int64_t kLogBytesShown = 64 << 10;
// How long one look at a starting server's health may keep us from its death or from a signal.
constexpr absl::Duration kHealthSlice = absl::Milliseconds(250);

// Where the command's log ends now; 0 without a log.
int64_t LogEnd(const Command& command) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(command.log_path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// What the command's log says last since `begin_bytes`, on lines of their own; for the end of a message.
std::string LogTail(const Command& command, int64_t begin_bytes) {
  if (command.log_path.empty()) return "";
  const std::string lines = LastLines(command.log_path, begin_bytes, kLogLinesShown);
  const std::string path = command.log_path.string();
  if (lines.empty()) return absl::StrCat("; ", path, " has no line of this run");
  return absl::StrCat("; ", path, " ends:\n", lines);
}

}  // namespace

std::string LastLines(const std::filesystem::path& log_path, int64_t begin_bytes, int num_lines) {
  std::ifstream log(log_path, std::ios::binary | std::ios::ate);
  if (!log) return "";
  const int64_t size = log.tellg();
  log.seekg(std::max(std::min(begin_bytes, size), size - kLogBytesShown));
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (lines.size() > static_cast<size_t>(num_lines)) lines.erase(lines.begin(), lines.end() - num_lines);
  return absl::StrJoin(lines, "\n");
}

Supervisor::Supervisor(SupervisorOptions options, StopSignals* signals)
    : options_(std::move(options)), signals_(signals) {}

Supervisor::~Supervisor() { StopAll(); }

absl::Status Supervisor::StartServer(ServerSpec spec) {
  const int64_t log_begin_bytes = LogEnd(spec.command);
  ASSIGN_OR_RETURN(LaunchedProcess process, LaunchedProcess::Start(spec.command));
  servers_.push_back(std::make_unique<Server>(
      Server{.spec = std::move(spec), .log_begin_bytes = log_begin_bytes, .process = std::move(process)}));
  return AwaitServing(servers_.back().get());
}

absl::Status Supervisor::StartTrainer(const Command& command) {
  const int64_t log_begin_bytes = LogEnd(command);
  ASSIGN_OR_RETURN(LaunchedProcess process, LaunchedProcess::Start(command));
  trainers_.push_back(
      {.command = command, .log_begin_bytes = log_begin_bytes, .process = std::move(process)});
  return absl::OkStatus();
}

absl::Status Supervisor::AwaitServing(Server* server) {
  const ServerSpec& spec = server->spec;
  const absl::Time deadline = absl::Now() + options_.ready_timeout;
  const std::string log = spec.command.log_path.string();
  const WaitLines waiting(absl::StrCat(spec.command.name, " to serve (", log, ")"), options_.ready_timeout,
                          options_.lines);
  while (absl::Now() < deadline) {
    if (options_.is_serving(spec.address, kHealthSlice)) return absl::OkStatus();
    if (const std::optional<int> status = server->process.AwaitEnd(absl::ZeroDuration())) {
      return absl::UnavailableError(absl::StrCat(spec.command.name, " ended before it served, with ",
                                                 DescribeExitStatus(*status),
                                                 LogTail(spec.command, server->log_begin_bytes)));
    }
    if (const std::optional<int> signal = signals_->Await(absl::ZeroDuration())) {
      return absl::CancelledError(absl::StrCat("stopped by signal ", *signal));
    }
  }
  return absl::UnavailableError(absl::StrCat(spec.command.name, " does not serve at ", spec.address,
                                             " after ", absl::FormatDuration(options_.ready_timeout),
                                             LogTail(spec.command, server->log_begin_bytes)));
}

absl::Status Supervisor::Restart(Server* server) {
  ++server->num_restarts;
  ASSIGN_OR_RETURN(server->process, LaunchedProcess::Start(server->spec.command));
  return AwaitServing(server);
}

int Supervisor::Run() {
  const int status = Watch();
  StopAll();
  return status;
}

int Supervisor::Watch() {
  while (true) {
    if (const std::optional<int> signal = signals_->Await(absl::ZeroDuration()))
      return StopTrainersAfterSignal(*signal);
    if (const std::optional<int> status = LookAtTrainers()) return *status;
    if (const std::optional<int> status = LookAtServers()) return *status;
    WaitForChange();
  }
}

// The run's status, once the trainers have one: all ended well, or one has not.
std::optional<int> Supervisor::LookAtTrainers() {
  size_t num_ended = 0;
  for (Trainer& trainer : trainers_) {
    const std::optional<int> status = trainer.process.AwaitEnd(absl::ZeroDuration());
    if (!status.has_value()) continue;
    if (*status != 0) {
      LogError(absl::StrCat(trainer.command.name, " ended with ", DescribeExitStatus(*status),
                            LogTail(trainer.command, trainer.log_begin_bytes)));
      return *status;
    }
    ++num_ended;
  }
  if (num_ended < trainers_.size()) return std::nullopt;
  return 0;
}

// Starts again what died; a status when that is no longer worth trying.
std::optional<int> Supervisor::LookAtServers() {
  for (const auto& server : servers_) {
    const std::optional<int> status = server->process.AwaitEnd(absl::ZeroDuration());
    if (!status.has_value()) continue;
    const std::string what =
        absl::StrCat(server->spec.command.name, " ended with ", DescribeExitStatus(*status));
    if (server->num_restarts >= options_.restarts_max) {
      LogError(absl::StrCat(what, " after ", server->num_restarts, " restarts, the most that are tried",
                            LogTail(server->spec.command, server->log_begin_bytes)));
      return 1;
    }
    LogWarning(
        absl::StrCat(what, "; starting it again, ", server->num_restarts + 1, " of ", options_.restarts_max));
    if (const absl::Status restarted = Restart(server.get()); absl::IsCancelled(restarted)) {
      return StopTrainersAfterSignal(SIGTERM);
    } else if (!restarted.ok()) {
      LogError(std::string(
          restarted.message()));  // its end counts as the next death, its lateness as a failure to serve
      server->process.Stop(options_.server_grace);
    }
  }
  return std::nullopt;
}

// What to poll: signals, and the ends of trainers that still run.
std::vector<pollfd> Supervisor::TrainersAndSignals() {
  std::vector<pollfd> watched = {{signals_->fd(), POLLIN, 0}};
  for (Trainer& trainer : trainers_) {
    if (trainer.process.AwaitEnd(absl::ZeroDuration()).has_value()) continue;
    watched.push_back({trainer.process.end_fd(), POLLIN, 0});
  }
  return watched;
}

void Supervisor::WaitForChange() {
  std::vector<pollfd> watched = TrainersAndSignals();
  for (const auto& server : servers_) watched.push_back({server->process.end_fd(), POLLIN, 0});
  poll(watched.data(), watched.size(), -1);
}

int Supervisor::StopTrainersAfterSignal(int signal) {
  LogWarning(absl::StrCat("stopping after signal ", signal, "; a second one stops at once"));
  for (Trainer& trainer : trainers_) trainer.process.Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + options_.trainer_grace;
  for (std::vector<pollfd> watched = TrainersAndSignals(); watched.size() > 1;
       watched = TrainersAndSignals()) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    poll(watched.data(), watched.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (signals_->Await(absl::ZeroDuration()).has_value()) break;
  }
  return 128 + signal;
}

// Trainers first, then servers from the last to the first: nobody calls a server that has gone.
void Supervisor::StopAll() {
  trainers_.clear();
  while (!servers_.empty()) {
    servers_.back()->process.Stop(options_.server_grace);
    servers_.pop_back();
  }
  ReapOrphans();
}

}  // namespace warpsmith
