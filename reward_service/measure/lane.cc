#include "reward_service/measure/lane.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// The judge must preempt what it judges.
constexpr int kJudgePriority = 20;
constexpr int kJailPriority = 10;

bool TakePriority(pid_t thread, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return sched_setscheduler(thread, SCHED_FIFO, &parameters) == 0;
}

bool TakeUsualPriority(pid_t thread) {
  const sched_param parameters{};
  return sched_setscheduler(thread, SCHED_OTHER, &parameters) == 0;
}

cpu_set_t SetOf(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  return set;
}

// Calls visit(thread, index). UNAVAILABLE when the process has ended.
template <typename Visit>
absl::Status ForEachThread(pid_t pid, Visit visit) {
  std::error_code error;
  size_t index = 0;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    RETURN_IF_ERROR(visit(std::atoi(entry.path().filename().c_str()), index++));
  }
  if (error) return absl::UnavailableError(absl::StrCat("process ", pid, " has ended"));
  return absl::OkStatus();
}

}  // namespace

absl::Status Lane::CheckRealtime() {
  sched_param before{};
  const int policy = sched_getscheduler(0);
  if (sched_getparam(0, &before) != 0 || !TakePriority(0, kJudgePriority)) {
    return absl::PermissionDeniedError(
        absl::StrCat("no right to real-time scheduling (", std::strerror(errno), ")"));
  }
  if (sched_setscheduler(0, policy, &before) != 0) return ErrnoStatus("sched_setscheduler", "back");
  return absl::OkStatus();
}

Lane::Lane(std::vector<int> cores, bool realtime, Judge judge)
    : lane_cores_(std::move(cores)), judge_cores_(lane_cores_), cores_(lane_cores_), realtime_(realtime) {
  if (judge == Judge::kApart && lane_cores_.size() > 1) {
    judge_cores_.resize(1);
    cores_.erase(cores_.begin());
  }
  const absl::Status status =
      realtime ? CheckRealtime() : absl::PermissionDeniedError("real-time scheduling is switched off");
  realtime_ = status.ok();
  why_not_ = std::string(status.message());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    const bool is_own = std::find(lane_cores_.begin(), lane_cores_.end(), core) != lane_cores_.end();
    if (is_own || CPU_ISSET(static_cast<size_t>(core), &set)) all_cores_.push_back(core);
  }
}

absl::Status Lane::Hold() const {
  const cpu_set_t set = SetOf(judge_cores_);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    return ErrnoStatus("pin the judge to lane cores", cores());
  if (realtime_ && !TakePriority(0, kJudgePriority))
    return ErrnoStatus("real-time priority for", "the judge");
  return absl::OkStatus();
}

absl::Status Lane::Leave() const {
  cpu_set_t set = SetOf(all_cores_);
  for (const int core : lane_cores_) CPU_CLR(static_cast<size_t>(core), &set);
  if (CPU_COUNT(&set) == 0) set = SetOf(all_cores_);
  if (!TakeUsualPriority(0) || sched_setaffinity(0, sizeof(set), &set) != 0)
    return ErrnoStatus("leave lane cores", cores());
  return absl::OkStatus();
}

absl::Status Lane::StayOut() const {
  if (realtime_) return absl::OkStatus();
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return ErrnoStatus("sched_getaffinity", "");
  for (const int core : lane_cores_) CPU_CLR(static_cast<size_t>(core), &set);
  if (CPU_COUNT(&set) == 0) return absl::OkStatus();
  return sched_setaffinity(0, sizeof(set), &set) == 0 ? absl::OkStatus()
                                                      : ErrnoStatus("leave lane cores", cores());
}

absl::Status Lane::Admit(pid_t pid) const {
  const cpu_set_t set = SetOf(cores_);
  return ForEachThread(pid, [&](pid_t thread, size_t) -> absl::Status {
    if (sched_setaffinity(thread, sizeof(set), &set) != 0) return ErrnoStatus("pin to lane cores", cores());
    if (realtime_ && !TakePriority(thread, kJailPriority))
      return ErrnoStatus("real-time priority for", absl::StrCat(pid));
    return absl::OkStatus();
  });
}

absl::Status Lane::Spread(pid_t pid) const {
  return ForEachThread(pid, [&](pid_t thread, size_t index) -> absl::Status {
    const cpu_set_t set = SetOf({all_cores_[index % all_cores_.size()]});
    if (sched_setaffinity(thread, sizeof(set), &set) != 0 || !TakeUsualPriority(thread))
      return ErrnoStatus("spread the threads of", absl::StrCat(pid));
    return absl::OkStatus();
  });
}

absl::Status Lane::Dismiss(pid_t pid) const {
  cpu_set_t set = SetOf(all_cores_);
  for (const int core : lane_cores_) CPU_CLR(static_cast<size_t>(core), &set);
  return ForEachThread(pid, [&](pid_t thread, size_t) -> absl::Status {
    const bool may_leave = CPU_COUNT(&set) == 0 || sched_setaffinity(thread, sizeof(set), &set) == 0;
    return may_leave && TakeUsualPriority(thread) ? absl::OkStatus()
                                                  : ErrnoStatus("dismiss", absl::StrCat(pid));
  });
}

std::string Lane::cores() const { return absl::StrJoin(lane_cores_, ","); }

std::string Lane::quality() const { return realtime_ ? "realtime" : absl::StrCat("best_effort: ", why_not_); }

}  // namespace warpsmith
