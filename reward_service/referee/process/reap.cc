#include "reward_service/referee/process/reap.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "absl/time/time.h"
#include "core/base/check.h"

namespace warpsmith {
namespace {

constexpr size_t kEndingMax = 8;

class UsualPriority {
 public:
  UsualPriority() : policy_(sched_getscheduler(0)) {
    const sched_param usual{};
    realtime_ = (policy_ == SCHED_FIFO || policy_ == SCHED_RR) && sched_getparam(0, &parameters_) == 0 &&
                sched_setscheduler(0, SCHED_OTHER, &usual) == 0;
  }
  ~UsualPriority() {
    if (realtime_) WS_CHECK(sched_setscheduler(0, policy_, &parameters_) == 0) << strerror(errno);
  }
  UsualPriority(const UsualPriority&) = delete;
  UsualPriority& operator=(const UsualPriority&) = delete;

 private:
  int policy_;
  sched_param parameters_{};
  bool realtime_ = false;
};

}  // namespace

pid_t Reap(pid_t pid, int* status, rusage* usage) {
  const UsualPriority usual_priority;
  for (;;) {
    const pid_t reaped = wait4(pid, status, 0, usage);
    if (reaped >= 0 || errno != EINTR) return reaped;
  }
}

Reaper::Reaper() : ending_(kEndingMax) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "reaper");
    while (!ending_.Finished()) {
      int status = 0;
      if (const std::optional<pid_t> pid = ending_.Pop(absl::InfiniteDuration()); pid) Reap(*pid, &status);
    }
  });
}

Reaper::~Reaper() {
  ending_.Close();
  thread_.join();
}

void Reaper::Take(pid_t pid) { ending_.Push(std::move(pid), absl::InfiniteDuration()); }

}  // namespace warpsmith
