#include "reward_service/referee/process/reap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "reward_service/jail/packet.h"

namespace warpsmith {
namespace {

constexpr size_t kEndingMax = 8;
constexpr size_t kSilentMax = 64;
// Who opens a GPU beside others says hello within a second.
constexpr absl::Duration kSilentTimeMax = absl::Seconds(10);

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

Reaper::Reaper() : ending_(kEndingMax), silent_(kSilentMax) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "reaper");
    while (!ending_.Finished()) {
      int status = 0;
      if (const std::optional<pid_t> pid = ending_.Pop(absl::InfiniteDuration()); pid) Reap(*pid, &status);
    }
  });
  silent_thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "silent reaper");
    while (!silent_.Finished()) {
      const std::optional<Silent> silent = silent_.Pop(absl::InfiniteDuration());
      if (!silent) continue;
      const absl::StatusOr<Packet> first = ReceivePacket(silent->socket.get(), silent->deadline);
      if (!first.ok() || first->sender <= 0) continue;
      kill(first->sender, SIGKILL);
      int status = 0;
      Reap(first->sender, &status);
    }
  });
}

Reaper::~Reaper() {
  ending_.Close();
  silent_.Close();
  thread_.join();
  silent_thread_.join();
}

void Reaper::Take(pid_t pid) { ending_.Push(std::move(pid), absl::InfiniteDuration()); }

void Reaper::TakeSilent(UniqueFd socket) {
  // It reads the end, and what it says still arrives here.
  (void)shutdown(socket.get(), SHUT_WR);
  (void)silent_.TryPush({std::move(socket), absl::Now() + kSilentTimeMax});
}

}  // namespace warpsmith
