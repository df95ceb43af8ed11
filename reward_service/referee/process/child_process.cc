#include "reward_service/referee/process/child_process.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/process/reap.h"

namespace warpsmith {
namespace {

constexpr int kDrainReadsMax = 64;
constexpr int kEndTimeoutMs = 1000;
constexpr int kEndTimeoutMsMax = 60'000;
constexpr int kInterruptionsMax = 20;  // of the wait for a stop, 50 ms apart

double MonotonicSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of a process's word, before it is asked whether something else has come of it: some 100 us.
constexpr int kLooksOfOwnCore = 2000;
// A thread with real-time priority that never sleeps loses its core for up to 50 ms of each second, by the kernel's
// default (sched(7), sched_rt_runtime_us).
constexpr absl::Duration kLookingMax = absl::Milliseconds(20);
// Shorter naps of a thread with real-time priority leave the process on its core no time.
constexpr long kNapNanosecondsMin = 50'000;
constexpr long kNapNanosecondsMax = 1'000'000;

// Leaves the core's other half to who computes there.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether this thread has no core that the process does not use.
bool SharesCores(pid_t pid) {
  cpu_set_t own, theirs, both;
  if (sched_getaffinity(0, sizeof(own), &own) != 0) return true;
  if (sched_getaffinity(pid, sizeof(theirs), &theirs) != 0) return true;
  CPU_AND(&both, &own, &theirs);
  return CPU_COUNT(&both) == CPU_COUNT(&own);
}

// Interrupts this thread's wait again and again while it lives, by a signal that does nothing else.
class Interruptions {
 public:
  Interruptions() {
    thread_local const timer_t timer = MakeTimer();
    timer_ = timer;
    Set(kMilliseconds * 1'000'000);
  }
  ~Interruptions() { Set(0); }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  static constexpr long kMilliseconds = 50;

  static timer_t MakeTimer() {
    const int number = SIGRTMIN;
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    sigaction(number, &action, nullptr);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, number);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_t timer{};
    WS_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) << strerror(errno);
    return timer;
  }

  void Set(long nanoseconds) const {
    itimerspec when{};
    when.it_value.tv_nsec = when.it_interval.tv_nsec = nanoseconds;
    timer_settime(timer_, 0, &when, nullptr);
  }

  timer_t timer_;
};

absl::Status Gone(pid_t pid) { return absl::UnavailableError(absl::StrCat("process ", pid, " has ended")); }

}  // namespace

std::string DescribeEnding(const Ending& ending) {
  if (!ending.ended) return "closed its socket";
  if (ending.signal == 0) return absl::StrCat("exited with code ", ending.exit_code);
  return absl::StrCat("was ended by signal ", ending.signal, " (", strsignal(ending.signal), ")");
}

bool UsedUp(const Ending& ending, double cpu_seconds_max) {
  constexpr double kLeastShare = 0.7;
  return ending.signal == SIGXCPU ||
         (ending.signal == SIGKILL && ending.cpu_seconds >= kLeastShare * cpu_seconds_max);
}

ChildProcess::~ChildProcess() {
  // Its socket is all we have of a process that has not said hello; closing it ends the process by itself.
  if (pid_ < 0) (void)AwaitHello(absl::Now() + absl::Milliseconds(200));
  if (pid_ < 0 && reaper_ != nullptr) reaper_->TakeSilent(std::move(socket_));
  if (pid_ < 0 || reaped_) return;
  // Stopped and alone in its memory it has nothing to do any more. Of several threads, each has the kernel write to
  // an address of its choice when it ends, and so has to be waited for.
  const bool is_still = stopped_ && num_threads() == 1;
  kill(pid_, SIGKILL);
  if (is_still && reaper_ != nullptr) {
    reaper_->Take(pid_);
    return;
  }
  int status = 0;
  (void)Reap(pid_, &status);
}

absl::Status ChildProcess::AwaitHello(absl::Time deadline) {
  if (pid_ > 0) return hello_;
  ASSIGN_OR_RETURN(const Packet packet, ReceivePacket(socket_.get(), deadline));
  // Of whoever fails, too: it is to be reaped.
  if (packet.sender > 0) pid_ = packet.sender;
  if (!Is<child::Hello>(packet.fields) || packet.sender <= 0) {
    const std::string error = Read(packet.fields, child::Failed::error);
    const std::string message = absl::StrCat("a process could not be confined: ", error);
    hello_ = SaysWantOfMemory(error) ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
  }
  return hello_;
}

absl::Status ChildProcess::Send(const nlohmann::json& fields, const std::vector<int>& descriptors) {
  return SendPacket(socket_.get(), fields, descriptors);
}

absl::StatusOr<Packet> ChildProcess::Receive(absl::Time deadline) {
  ASSIGN_OR_RETURN(Packet packet, ReceivePacket(socket_.get(), deadline));
  // Closed here, at a moment of its choice, they could do something for whoever sent them.
  if (!packet.descriptors.empty()) return absl::InvalidArgumentError("an answer with descriptors");
  return packet;
}

absl::StatusOr<Packet> ChildProcess::Ask(const nlohmann::json& fields, const std::vector<int>& descriptors,
                                         absl::Time deadline) {
  RETURN_IF_ERROR(Send(fields, descriptors));
  return Receive(deadline);
}

absl::Status ChildProcess::Stop() {
  if (stopped_) return absl::OkStatus();
  if (reaped_ || kill(pid_, SIGSTOP) != 0) return Gone(pid_);
  siginfo_t info{};
  const Interruptions interruptions;
  int num_interruptions = 0;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return Gone(pid_);
    // A SIGCONT that came meanwhile took the stop back.
    kill(pid_, ++num_interruptions < kInterruptionsMax ? SIGSTOP : SIGKILL);
  }
  if (info.si_code != CLD_STOPPED) return Gone(pid_);
  // Take the notice itself, so that the next wait sees the next stop.
  waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);
  stopped_ = true;
  return absl::OkStatus();
}

absl::Status ChildProcess::Continue() {
  if (!stopped_) return absl::OkStatus();
  if (reaped_ || kill(pid_, SIGCONT) != 0) return Gone(pid_);
  stopped_ = false;
  return absl::OkStatus();
}

absl::StatusOr<TimedAnswer> ChildProcess::AskOnTheClock(const nlohmann::json& fields, absl::Duration timeout,
                                                        absl::FunctionRef<void()> before_stop) {
  RETURN_IF_ERROR(Send(fields));
  const absl::Time deadline = absl::Now() + timeout;
  const double start = MonotonicSeconds();
  RETURN_IF_ERROR(Continue());
  absl::StatusOr<Packet> answer = Receive(deadline);
  const double answered = MonotonicSeconds();
  if (answer.ok()) before_stop();
  const double stopping = MonotonicSeconds();
  const absl::Status stop = Stop();
  const double end = MonotonicSeconds();
  DrainOutput();
  if (!answer.ok()) return answer.status();
  // A crash report comes from a process that is about to end: what it says is worth more than that it is
  // gone.
  if (!stop.ok() && !Is<jail::Crash>(answer->fields)) return stop;
  return TimedAnswer{
      .seconds = answered - start, .stop_seconds = end - stopping, .answer = *std::move(answer)};
}

absl::StatusOr<TimedAnswer> ChildProcess::StartOnTheClock(const nlohmann::json& fields,
                                                          absl::Duration timeout, StartLine* line,
                                                          const std::vector<size_t>& rooms,
                                                          const LineSteps& steps) {
  RETURN_IF_ERROR(Send(fields));
  absl::Time deadline = absl::Now() + timeout;
  const auto is_ready = [line] { return line->is_ready(); };
  RETURN_IF_ERROR(Continue());
  // Whoever waits for a device may keep the core.
  if (SharesCores(pid_)) AwaitAtLine(deadline, is_ready);
  steps.occupied();
  const double free = MonotonicSeconds();
  const bool is_in_time = AwaitAtLine(deadline, is_ready);
  const double ready = MonotonicSeconds();
  if (is_in_time) steps.before_start();
  const double start = MonotonicSeconds();
  line->Start(rooms);
  const auto is_done = [line] { return line->is_done(); };
  bool has_answered = AwaitAtLine(deadline, is_done);
  if (!has_answered && is_in_time) {
    const absl::Duration overtime = steps.overtime();
    deadline = absl::Now() + overtime;
    has_answered = AwaitAtLine(deadline, is_done);
  }
  const double answered = MonotonicSeconds();
  if (has_answered) steps.before_stop();
  const double stopping = MonotonicSeconds();
  absl::StatusOr<Packet> answer = Receive(deadline);
  const double received = MonotonicSeconds();
  const absl::Status stop = Stop();
  const double end = MonotonicSeconds();
  DrainOutput();
  if (!answer.ok()) return answer.status();
  // As of AskOnTheClock().
  if (!stop.ok() && !Is<jail::Crash>(answer->fields)) return stop;
  return TimedAnswer{.seconds = answered - start,
                     .answer_seconds = received - stopping,
                     .stop_seconds = end - received,
                     .late_seconds = ready - free,
                     .answer = *std::move(answer)};
}

bool ChildProcess::AwaitAtLine(absl::Time deadline, absl::FunctionRef<bool()> reached) const {
  const bool has_own_core = !SharesCores(pid_);
  const absl::Time looks_until = absl::Now() + kLookingMax;
  const timespec at_once{}, shortest{.tv_sec = 0, .tv_nsec = kNapNanosecondsMin};
  timespec nap{.tv_sec = 0, .tv_nsec = kNapNanosecondsMin};
  while (absl::Now() < deadline) {
    for (int look = 0; look < (has_own_core ? kLooksOfOwnCore : 1); ++look) {
      if (reached()) return true;
      Pause();
    }
    pollfd event{socket_.get(), POLLIN, 0};
    const timespec& pause = !has_own_core ? nap : absl::Now() < looks_until ? at_once : shortest;
    if (ppoll(&event, 1, &pause, nullptr) > 0) return true;
    nap.tv_nsec = std::min(2 * nap.tv_nsec, kNapNanosecondsMax);
  }
  return false;
}

void ChildProcess::Kill() const {
  if (pid_ > 0 && !reaped_) kill(pid_, SIGKILL);
}

absl::Status ChildProcess::EndBy(absl::Time deadline) {
  if (pid_ < 0 || reaped_) return absl::OkStatus();
  Kill();
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (pidfd.get() < 0) return ErrnoStatus("pidfd_open of a killed process", "");
  pollfd event{pidfd.get(), POLLIN, 0};
  int polled = 0;
  do {
    const int64_t left_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now()));
    polled = poll(&event, 1, static_cast<int>(std::min<int64_t>(left_ms, kEndTimeoutMsMax)));
  } while (polled < 0 && errno == EINTR);
  if (polled > 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("process ", pid_, " was killed and does not end: a driver may hold it"));
}

Ending ChildProcess::AwaitEnd() {
  Ending ending;
  if (pid_ < 0 || reaped_) return ending;
  (void)Continue();
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd event{pidfd.get(), POLLIN, 0};
  if (poll(&event, 1, kEndTimeoutMs) <= 0) return ending;
  int status = 0;
  rusage usage{};
  if (Reap(pid_, &status, &usage) != pid_) return ending;
  reaped_ = true;
  ending.ended = true;
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  ending.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return ending;
}

// A bounded number of reads: a process that still runs could print for ever.
void ChildProcess::DrainOutput() {
  char buffer[4096];
  for (int i = 0; i < kDrainReadsMax; ++i) {
    if (read(output_.get(), buffer, sizeof(buffer)) <= 0) return;
  }
}

absl::Status ChildProcess::CheckCode() const {
  if (code_ == nullptr) return absl::FailedPreconditionError("nobody said which code is permitted");
  return code_->Check(pid_);
}

int ChildProcess::num_threads() const {
  std::error_code error;
  const std::filesystem::directory_iterator threads(absl::StrCat("/proc/", pid_, "/task"), error);
  return error ? 0 : static_cast<int>(std::distance(begin(threads), end(threads)));
}

double ChildProcess::cpu_seconds() const {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0)
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

int64_t ChildProcess::anonymous_bytes() const {
  static const std::string kName = "RssAnon:";
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, kName)) continue;
    return int64_t{1024} * std::strtoll(line.c_str() + kName.size(), nullptr, 10);  // "  1234 kB"
  }
  return 0;
}

}  // namespace warpsmith
