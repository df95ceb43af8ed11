#include "rollout_workers/device/rank_threads.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace warpsmith::device {

namespace {

// LibTorch, whose parameters members take, throws.
absl::Status Result(const std::function<absl::Status(int)>& work, int rank) {
  try {
    return work(rank);
  } catch (const std::exception& error) {
    return absl::InternalError(Escape(error.what(), 512));
  }
}

}  // namespace

struct RankThreads::State {
  // Of thread `rank`, until it is told to stop.
  void Serve(int rank) ABSL_LOCKS_EXCLUDED(mutex) {
    int64_t seen = 0;
    const auto is_called = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex) { return is_stopping || calls > seen; };
    while (true) {
      std::function<absl::Status(int)> mine;
      {
        absl::MutexLock lock(&mutex);
        mutex.Await(absl::Condition(&is_called));
        if (is_stopping) return;
        seen = calls;
        mine = work;
      }
      const absl::Status status = Result(mine, rank);
      mine = nullptr;
      absl::MutexLock lock(&mutex);
      if (!status.ok() && outcome.status.ok()) outcome = {status, rank};
      --num_away;
      is_away[rank] = false;
    }
  }

  absl::Mutex mutex;
  std::function<absl::Status(int)> work ABSL_GUARDED_BY(mutex);
  int64_t calls ABSL_GUARDED_BY(mutex) = 0;
  int num_away ABSL_GUARDED_BY(mutex) = 0;
  std::vector<bool> is_away ABSL_GUARDED_BY(mutex);
  RankOutcome outcome ABSL_GUARDED_BY(mutex);
  bool is_stopping ABSL_GUARDED_BY(mutex) = false;
};

RankThreads::RankThreads(int count) : count_(count), state_(std::make_shared<State>()) {
  absl::MutexLock lock(&state_->mutex);
  state_->is_away.resize(count);
  for (int rank = 0; rank < count; ++rank) {
    std::thread([state = state_, rank] {
      pthread_setname_np(pthread_self(), absl::StrCat("ws-rank-", rank).c_str());
      state->Serve(rank);
    }).detach();
  }
}

RankThreads::~RankThreads() {
  absl::MutexLock lock(&state_->mutex);
  state_->is_stopping = true;
}

RankOutcome RankThreads::Run(std::function<absl::Status(int rank)> work, absl::Duration timeout,
                             const std::function<void()>& on_failure) {
  const absl::Time deadline = absl::Now() + timeout;
  State& state = *state_;
  {
    absl::MutexLock lock(&state.mutex);
    WS_CHECK(state.num_away == 0) << "rank threads are under way";
    state.work = std::move(work);
    state.outcome = {};
    state.num_away = count_;
    state.is_away.assign(count_, true);
    ++state.calls;
    const auto is_settled = [&state, &on_failure]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
      return state.num_away == 0 || (on_failure != nullptr && !state.outcome.status.ok());
    };
    state.mutex.AwaitWithDeadline(absl::Condition(&is_settled), deadline);
    if (state.num_away == 0 && (on_failure == nullptr || state.outcome.status.ok())) {
      state.work = nullptr;
      return state.outcome;
    }
  }
  if (on_failure != nullptr) on_failure();
  absl::MutexLock lock(&state.mutex);
  const auto all_back = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) { return state.num_away == 0; };
  if (on_failure != nullptr) state.mutex.AwaitWithTimeout(absl::Condition(&all_back), kGrace);
  state.work = nullptr;
  if (!state.outcome.status.ok()) return state.outcome;
  const auto late = std::find(state.is_away.begin(), state.is_away.end(), true) - state.is_away.begin();
  return {absl::DeadlineExceededError(absl::StrCat("not done within ", absl::FormatDuration(timeout))),
          late < count_ ? static_cast<int>(late) : 0};
}

bool RankThreads::is_stuck() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->num_away > 0;
}

struct RankMeeting::State {
  explicit State(int count) : count(count) {}

  const int count;
  absl::Mutex mutex;
  int num_waiting ABSL_GUARDED_BY(mutex) = 0;
  int64_t meetings ABSL_GUARDED_BY(mutex) = 0;
};

RankMeeting::RankMeeting(int count) : state_(std::make_shared<State>(count)) {}

void RankMeeting::Meet(absl::Duration timeout) {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  if (++state.num_waiting == state.count) {
    state.num_waiting = 0;
    ++state.meetings;
    return;
  }
  const int64_t before = state.meetings;
  const auto has_met = [&]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) { return state.meetings > before; };
  if (!state.mutex.AwaitWithTimeout(absl::Condition(&has_met), timeout)) --state.num_waiting;
}

}  // namespace warpsmith::device
