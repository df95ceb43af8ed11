// A confined process that a zygote made for the referee: an oracle or a jail. Stopped and continued from
// here.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CHILD_PROCESS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "reward_service/jail/packet.h"
#include "reward_service/referee/process/reap.h"
#include "reward_service/referee/process/start_line.h"
#include "reward_service/referee/process/withheld_code.h"

namespace warpsmith {

// How a process ended.
struct Ending {
  bool ended = false;  // false: it still ran a second later
  int exit_code = 0;   // when it exited
  int signal = 0;      // when a signal ended it
  double cpu_seconds = 0;
};

// "exited with code 0", "was ended by signal 11 (Segmentation fault)".
std::string DescribeEnding(const Ending& ending);
// Whether the kernel ended it for its CPU time. It counts the limit in ticks, the use exactly: on a busy
// machine they differ by some tenths.
bool UsedUp(const Ending& ending, double cpu_seconds_max);

struct TimedAnswer {
  double seconds = 0;  // from the release to the answer, or to that word
  double answer_seconds =
      0;  // StartOnTheClock(): from the word that all is done, and `before_stop`, to the answer
  double stop_seconds = 0;  // from there to the confirmed stop
  double late_seconds =
      0;  // StartOnTheClock(): that the process was not yet ready when nothing kept the device busy
  Packet answer;
};

// What is done around a run at a start line: on no clock, but for the overtime.
struct LineSteps {
  // Once the process is continued: returns when the device is no longer kept busy with other work.
  std::function<void()> occupied = [] {};
  std::function<void()> before_start = [] {};  // it is ready
  // It started in time, and has said nothing: how long it is waited for once this returns, and no longer.
  std::function<absl::Duration()> overtime = [] { return absl::ZeroDuration(); };
  std::function<void()> before_stop = [] {};  // it is done, or has answered
};

// One thread at a time. The process is killed on destruction: from then on it runs no code of its own and
// writes to no memory. UNAVAILABLE from any call: it is gone.
class ChildProcess {
 public:
  // `code`: what its zygote permits, for CheckCode(); null where nobody asks. `reaper`: for processes that are
  // stopped when they are killed; null: each is waited for.
  ChildProcess(UniqueFd socket, UniqueFd output, std::shared_ptr<const PermittedCode> code = nullptr,
               std::shared_ptr<Reaper> reaper = nullptr)
      : socket_(std::move(socket)),
        output_(std::move(output)),
        code_(std::move(code)),
        reaper_(std::move(reaper)) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits until the process is confined; idempotent. INTERNAL when it could not be, RESOURCE_EXHAUSTED when that is for
  // want of memory, by its own words: of a GPU that it was to open.
  absl::Status AwaitHello(absl::Time deadline);

  absl::Status Send(const nlohmann::json& fields, const std::vector<int>& descriptors = {});
  absl::StatusOr<Packet> Receive(absl::Time deadline);
  // Send and Receive.
  absl::StatusOr<Packet> Ask(const nlohmann::json& fields, const std::vector<int>& descriptors,
                             absl::Time deadline);

  // Every thread stops; returns when the kernel confirms it. What cannot be stopped within a second is
  // killed: UNAVAILABLE.
  absl::Status Stop();
  absl::Status Continue();
  bool stopped() const { return stopped_; }

  // For a stopped process: continues it with a command waiting, takes its answer as a hint, stops it; the
  // clocks run from before the continuation to after the confirmed stop. DEADLINE_EXCEEDED when no answer
  // came in time: the process is stopped then. `before_stop` is done between an answer and the stop, on no clock.
  absl::StatusOr<TimedAnswer> AskOnTheClock(
      const nlohmann::json& fields, absl::Duration timeout, absl::FunctionRef<void()> before_stop = [] {});

  // The same for a process that waits at `line`, of which `fields` tell it: the clock runs from when it may go on until
  // it says that it is done, or answers. Then its answer is waited for on that of the stop.
  absl::StatusOr<TimedAnswer> StartOnTheClock(const nlohmann::json& fields, absl::Duration timeout,
                                              StartLine* line, const std::vector<size_t>& rooms,
                                              const LineSteps& steps);

  // Unless it has been reaped: its number may be another's then.
  void Kill() const;
  // Kills it and waits until no thread of it runs any more, until `deadline` at most: UNAVAILABLE, and then only its
  // destruction is left, which may wait for ever.
  absl::Status EndBy(absl::Time deadline);

  // After UNAVAILABLE: reaps, waiting at most a second.
  Ending AwaitEnd();

  // For a stopped process in a sealed jail: whether all code in it is permitted, or of the candidate's own
  // libraries. FAILED_PRECONDITION names what is not.
  absl::Status CheckCode() const;

  pid_t pid() const { return pid_; }
  int num_threads() const;          // that it has now; 0 when it is gone
  int64_t anonymous_bytes() const;  // in memory now, of no file; 0 when it is gone
  double cpu_seconds() const;       // that it has used; infinite when it is gone

 private:
  // Makes room in the pipe for what it prints next. Never blocks.
  void DrainOutput();
  // Until `reached` is, or there is an answer to receive; false where neither came by the deadline.
  bool AwaitAtLine(absl::Time deadline, absl::FunctionRef<bool()> reached) const;

  UniqueFd socket_;
  UniqueFd output_;
  std::shared_ptr<const PermittedCode> code_;
  std::shared_ptr<Reaper> reaper_;
  pid_t pid_ = -1;
  absl::Status hello_;  // what AwaitHello() found once it knew the process
  bool stopped_ = false;
  bool reaped_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_CHILD_PROCESS_H_
