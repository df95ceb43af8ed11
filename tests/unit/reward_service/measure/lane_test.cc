#include "reward_service/measure/lane.h"

#include <sched.h>

#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<int> CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

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

}  // namespace
}  // namespace warpsmith
