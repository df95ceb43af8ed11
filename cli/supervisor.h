// Keeps the servers of a run alive for as long as its trainers work, and ends all of them together.
#ifndef WARPSMITH_CLI_SUPERVISOR_H_
#define WARPSMITH_CLI_SUPERVISOR_H_

#include <poll.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/child_process.h"
#include "cli/stop_signals.h"
#include "core/base/wait_lines.h"

namespace warpsmith {

// A process that others call.
struct ServerSpec {
  Command command;
  std::string address;  // "unix:PATH" or "host:port", where it will serve
};

struct SupervisorOptions {
  int restarts_max = 5;                              // of each server, over the whole run
  absl::Duration ready_timeout = absl::Minutes(2);   // for a server to say SERVING
  absl::Duration trainer_grace = absl::Seconds(60);  // between SIGTERM and SIGKILL: a step may be under way
  absl::Duration server_grace = absl::Seconds(10);
  WaitLineOptions lines;  // while it has not said so
  // Whether the server at an address serves; waits at most the given time for it. From core/rpc in the
  // product.
  std::function<bool(const std::string& address, absl::Duration timeout)> is_serving;
};

// Starts servers in order, then trainers; Run() returns when the trainers have ended or somebody asked to
// stop. A server that dies is started again at the same address, a bounded number of times; a trainer that
// dies ends the run. Not thread-safe. Everything that was started is gone after destruction.
class Supervisor {
 public:
  // `signals` tells of SIGINT and SIGTERM; it must outlive this.
  Supervisor(SupervisorOptions options, StopSignals* signals);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Starts a server and waits until it serves. UNAVAILABLE with its log when it dies or is late, CANCELLED on
  // a signal.
  absl::Status StartServer(ServerSpec spec);

  // Starts a trainer process; several form one group.
  absl::Status StartTrainer(const Command& command);

  // Watches until every trainer has ended well (0), one has not (its status as of LaunchedProcess), a server
  // died too often (1), or a signal came (128 + its number, once trainers have had their grace). Then stops
  // everything.
  int Run();

 private:
  // A process and where its log ended before this run started it: the lines before are of another run.
  struct Server {
    ServerSpec spec;
    int64_t log_begin_bytes = 0;
    LaunchedProcess process;
    int num_restarts = 0;
  };
  struct Trainer {
    Command command;
    int64_t log_begin_bytes = 0;
    LaunchedProcess process;
  };

  absl::Status AwaitServing(Server* server);
  absl::Status Restart(Server* server);
  int Watch();
  std::optional<int> LookAtTrainers();
  std::optional<int> LookAtServers();
  std::vector<pollfd> TrainersAndSignals();
  void WaitForChange();
  int StopTrainersAfterSignal(int signal);
  void StopAll();

  const SupervisorOptions options_;
  StopSignals* const signals_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Trainer> trainers_;
};

// At most `num_lines` of the last lines of a log, of those that begin at byte `begin_bytes` or later; for a
// message about the process that wrote them. Empty if there are none. Reads at most the last 64 KiB.
std::string LastLines(const std::filesystem::path& log_path, int64_t begin_bytes, int num_lines);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_SUPERVISOR_H_
