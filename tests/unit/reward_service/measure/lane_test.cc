#include "reward_service/measure/lane.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<int> CoresOf(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(thread, sizeof(set), &set) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> CoresOfThisThread() { return CoresOf(0); }

// A child that is stopped for as long as this lives.
class StoppedChild {
 public:
  StoppedChild() : pid_(fork()) {
    if (pid_ == 0) {
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_);
    REQUIRE(WIFSTOPPED(status));
  }
  ~StoppedChild() { End(); }
  StoppedChild(const StoppedChild&) = delete;
  StoppedChild& operator=(const StoppedChild&) = delete;

  void End() {
    if (ended_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    ended_ = true;
  }

  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
  bool ended_ = false;
};

// The cores that a thread may use after it was told to stay out of the last one's lane.
std::vector<int> CoresAfterStayOut(int lane_core, bool realtime) {
  std::vector<int> cores;
  std::thread([&] {
    CHECK(Lane({lane_core}, realtime).StayOut().ok());
    cores = CoresOfThisThread();
  }).join();
  return cores;
}

TEST_CASE("asking for the right to real-time scheduling leaves the thread as it was") {
  const int before = sched_getscheduler(0);
  const absl::Status status = Lane::CheckRealtime();
  CHECK((status.ok() || absl::IsPermissionDenied(status)));
  CHECK(sched_getscheduler(0) == before);
  CHECK(Lane({0}, /*realtime=*/true).realtime() == status.ok());
  CHECK_FALSE(Lane({0}, /*realtime=*/false).realtime());
}

TEST_CASE("others keep off the cores of a lane that cannot preempt them, and of no other") {
  const std::vector<int> all = CoresOfThisThread();
  std::vector<int> others = all;
  others.pop_back();
  if (others.empty()) others = all;  // a single core is shared
  CHECK(CoresAfterStayOut(all.back(), /*realtime=*/false) == others);
  const bool preempts = Lane::CheckRealtime().ok();
  CHECK(CoresAfterStayOut(all.back(), /*realtime=*/true) == (preempts ? all : others));
}

TEST_CASE("a dismissed process leaves the lane's cores, where there are others, and its priority") {
  const std::vector<int> all = CoresOfThisThread();
  const std::vector<int> others(all.begin(), all.end() - 1);
  for (const bool realtime : {true, false}) {
    const Lane lane({all.back()}, realtime);
    const StoppedChild child;
    REQUIRE(lane.Admit(child.pid()).ok());
    REQUIRE(CoresOf(child.pid()) == lane.core_list());
    REQUIRE(sched_getscheduler(child.pid()) == (lane.realtime() ? SCHED_FIFO : SCHED_OTHER));
    CHECK(lane.Dismiss(child.pid()).ok());
    CHECK(CoresOf(child.pid()) == (others.empty() ? all : others));
    CHECK(sched_getscheduler(child.pid()) == SCHED_OTHER);
  }
}

TEST_CASE("threads are dealt out to the lane's cores and those around, whether it preempts others or not") {
  const std::vector<int> all = CoresOfThisThread();
  for (const bool realtime : {true, false}) {
    const Lane lane({all.back()}, realtime);
    CHECK(lane.num_cores_around() == static_cast<int>(all.size()));
    const StoppedChild child;
    REQUIRE(lane.Admit(child.pid()).ok());
    CHECK(lane.Spread(child.pid()).ok());
    CHECK(CoresOf(child.pid()) == std::vector<int>{all.front()});
    CHECK(sched_getscheduler(child.pid()) == SCHED_OTHER);
  }
}

TEST_CASE("a lane has its own cores around it, though this process was kept off them") {
  const std::vector<int> all = CoresOfThisThread();
  int num_around = 0;
  std::thread([&] {
    REQUIRE(Lane({all.back()}, /*realtime=*/false).StayOut().ok());
    num_around = Lane({all.back()}, /*realtime=*/false).num_cores_around();
  }).join();
  CHECK(num_around == static_cast<int>(all.size()));
}

TEST_CASE("a process is dismissed from a lane of all cores too, and stays on them") {
  const std::vector<int> all = CoresOfThisThread();
  const Lane lane(all, /*realtime=*/true);
  const StoppedChild child;
  REQUIRE(lane.Admit(child.pid()).ok());
  CHECK(lane.Dismiss(child.pid()).ok());
  CHECK(CoresOf(child.pid()) == all);
  CHECK(sched_getscheduler(child.pid()) == SCHED_OTHER);
}

TEST_CASE("a judge that is apart has a core to itself, where the lane has several") {
  const std::vector<int> all = CoresOfThisThread();
  if (all.size() < 2) return;
  const std::vector<int> cores = {all[0], all[1]};
  const Lane lane(cores, /*realtime=*/false, Lane::Judge::kApart);
  CHECK(lane.num_threads() == 1);
  std::thread([&] {
    REQUIRE(lane.Hold().ok());
    CHECK(CoresOfThisThread() == std::vector<int>{cores[0]});
  }).join();
  const StoppedChild child;
  REQUIRE(lane.Admit(child.pid()).ok());
  CHECK(CoresOf(child.pid()) == std::vector<int>{cores[1]});
  CHECK(Lane({cores[0]}, /*realtime=*/false, Lane::Judge::kApart).core_list() == std::vector<int>{cores[0]});
}

TEST_CASE("to dismiss a process that has ended is an error") {
  const Lane lane({CoresOfThisThread().back()}, /*realtime=*/true);
  StoppedChild child;
  REQUIRE(lane.Admit(child.pid()).ok());
  child.End();
  CHECK(absl::IsUnavailable(lane.Dismiss(child.pid())));
}

}  // namespace
}  // namespace warpsmith
