#include "reward_service/referee/tensors/device_turn.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "reward_service/referee/tensors/phase_clock.h"

namespace warpsmith {
namespace {

constexpr std::array<const char*, kNumTurnsFor> kNames = {"verify", "time", "health", "load",
                                                          "window", "draw", "record", "end"};

}  // namespace

DeviceTurn::Held::Held(DeviceTurn* turn, Kind kind, TurnFor what) : turn_(turn), kind_(kind), what_(what) {
  {
    const InPhase phase(Phase::kTurn);
    if (turn_ != nullptr) turn_->Lock(kind);
  }
  since_ = absl::Now();
}

DeviceTurn::Held::~Held() {
  if (turn_ != nullptr) turn_->Unlock(kind_, what_, {1, waited(), absl::Now() - since_});
}

void DeviceTurn::Lock(Kind kind) {
  absl::MutexLock lock(&mutex_);
  if (kind == Kind::kAlone) {
    const uint64_t number = num_asked_++;
    const auto is_next = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return num_ended_ == number && num_sharing_ == 0;
    };
    mutex_.Await(absl::Condition(&is_next));
    return;
  }
  if (num_asked_ == num_ended_) {
    ++num_sharing_;
    return;
  }
  // Whoever ends the present turn alone, or the next one, counts us among those who share.
  ++num_waiting_to_share_;
  const uint64_t number = num_ended_;
  const auto is_let_in = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_ended_ > number; };
  mutex_.Await(absl::Condition(&is_let_in));
}

void DeviceTurn::Unlock(Kind kind, TurnFor what, const Use& use) {
  absl::MutexLock lock(&mutex_);
  Use& sum = uses_.at(static_cast<size_t>(what));
  sum.num_turns += use.num_turns;
  sum.waited += use.waited;
  sum.held += use.held;
  if (kind == Kind::kShared) {
    --num_sharing_;
    return;
  }
  ++num_ended_;
  num_sharing_ += std::exchange(num_waiting_to_share_, 0);
}

std::string DeviceTurn::TakeReport() {
  absl::MutexLock lock(&mutex_);
  std::string report;
  for (size_t i = 0; i < kNumTurnsFor; ++i) {
    const Use use = std::exchange(uses_.at(i), {});
    if (use.num_turns == 0) continue;
    absl::StrAppend(&report, report.empty() ? "" : ", ", kNames.at(i), " ", use.num_turns,
                    absl::StrFormat(" (%.2f + %.2f s)", absl::ToDoubleSeconds(use.waited),
                                    absl::ToDoubleSeconds(use.held)));
  }
  return report;
}

}  // namespace warpsmith
