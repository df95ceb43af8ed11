#include "reward_service/referee/process/reap.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/lane.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 50;
constexpr int kProcesses = 20;
// One that it waits for, and eight behind it.
constexpr size_t kReaperHolds = 9;

bool SetPriority(pid_t thread, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return sched_setscheduler(thread, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0;
}

// A process of many threads, all at a priority below ours, whose entries in /proc have been looked at.
pid_t StartProcessOfThreads() {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    SetPriority(0, 10);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([] { pause(); });
    if (write(ready[1], "", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return -1;
  close(ready[0]);
  close(ready[1]);
  for (const auto& thread : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    for (const char* name : {"stat", "status", "comm", "maps"})
      (void)access((thread.path() / name).c_str(), R_OK);
  }
  return pid;
}

TEST_CASE("a real-time thread reaps processes whose threads leave at a lower priority", "[reap]") {
  if (!Lane::CheckRealtime().ok()) {
    WARN("skipped: no right to real-time scheduling");
    return;
  }
  if (std::thread::hardware_concurrency() < 2) {
    WARN("skipped: needs a second core, to notice when it does not end");
    return;
  }
  std::atomic<int> reaped{0};
  int last_priority = 0;
  std::atomic<pid_t> reaper_thread{0};
  std::thread reaper([&] {
    reaper_thread = static_cast<pid_t>(syscall(SYS_gettid));
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &core);
    sched_setaffinity(0, sizeof(core), &core);
    SetPriority(0, 20);
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t pid = StartProcessOfThreads();
      if (pid <= 0) return;
      kill(pid, SIGKILL);
      int status = 0;
      if (Reap(pid, &status) == pid && WIFSIGNALED(status)) ++reaped;
    }
    sched_param parameters{};
    if (sched_getscheduler(0) == SCHED_FIFO && sched_getparam(0, &parameters) == 0)
      last_priority = parameters.sched_priority;
  });
  int last_seen = -1;
  for (int second = 0; second < 60 && reaped < kProcesses && reaped != last_seen; second += 5) {
    last_seen = reaped;
    for (int i = 0; i < 50 && reaped < kProcesses; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const int reaped_in_time = reaped;
  // Without this a failure would hold the core until the machine is switched off.
  if (reaped_in_time < kProcesses) SetPriority(reaper_thread, 0);
  reaper.join();
  CHECK(reaped_in_time == kProcesses);
  if (reaped_in_time == kProcesses) CHECK(last_priority == 20);
}

// It does nothing until it is killed.
pid_t StartIdleProcess() {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test fail first
    for (;;) pause();
  }
  return pid;
}

std::vector<pid_t> StartIdleProcesses(int num_processes) {
  std::vector<pid_t> pids;
  for (int i = 0; i < num_processes; ++i) pids.push_back(StartIdleProcess());
  return pids;
}

// Neither running nor a zombie.
bool IsReaped(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST_CASE("a reaper that goes away leaves no zombie, also of those that have only just been killed") {
  const std::vector<pid_t> pids = StartIdleProcesses(6);
  auto reaper = std::make_unique<Reaper>();
  for (const pid_t pid : pids) reaper->Take(pid);
  // As late as can be: they end while the reaper goes away.
  for (const pid_t pid : pids) REQUIRE(kill(pid, SIGKILL) == 0);
  reaper.reset();
  for (const pid_t pid : pids) CHECK(IsReaped(pid));
}

TEST_CASE("a reaper that is given more processes than it holds waits, and reaps every one") {
  const std::vector<pid_t> pids = StartIdleProcesses(40);
  const pid_t first = pids.front();  // while it lives nothing is reaped
  for (const pid_t pid : pids) {
    if (pid != first) REQUIRE(kill(pid, SIGKILL) == 0);
  }
  auto reaper = std::make_unique<Reaper>();
  for (size_t i = 0; i < pids.size(); ++i) {
    if (i == kReaperHolds) REQUIRE(kill(first, SIGKILL) == 0);
    reaper->Take(pids[i]);
  }
  reaper.reset();
  for (const pid_t pid : pids) CHECK(IsReaped(pid));
}

// The referee's end of a process that does nothing before it reads the end of its socket, says who it is where it
// `speaks`, and then does nothing until it is killed.
UniqueFd StartSilentProcess(bool speaks, pid_t* pid) {
  auto pair = MakePacketPair();
  REQUIRE(pair.ok());
  const int on = 1;
  REQUIRE(setsockopt(pair->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
  *pid = fork();
  if (*pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pair->first.Reset();
    (void)ReceivePacket(pair->second.get());
    if (!speaks) _exit(0);
    (void)SendPacket(pair->second.get(), {{"op", "hello"}});
    for (;;) pause();
  }
  return std::move(pair->first);
}

TEST_CASE("a process that has not said hello is told to end, and reaped once it says who it is") {
  pid_t late = 0, mute = 0;
  auto reaper = std::make_unique<Reaper>();
  reaper->TakeSilent(StartSilentProcess(/*speaks=*/false, &mute));  // keeps nobody waiting
  reaper->TakeSilent(StartSilentProcess(/*speaks=*/true, &late));
  reaper.reset();
  CHECK(IsReaped(late));
  CHECK(waitpid(mute, nullptr, 0) == mute);  // nobody else knew of it
}

}  // namespace
}  // namespace warpsmith
