#include "reward_service/referee/tensors/device_turn.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace warpsmith {
namespace {

// Each begins where the one before has ended; before the first all must end who share.
constexpr int kAloneInRowMax = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> DeviceTurn::Take(DeviceTurn* turn, Kind kind,
                                                                   absl::Time deadline) {
  const absl::Time asked = absl::Now();
  if (turn != nullptr && !turn->Lock(kind, deadline)) {
    return absl::DeadlineExceededError(absl::StrFormat("the device's turn did not come within %.1f s",
                                                       absl::ToDoubleSeconds(absl::Now() - asked)));
  }
  return absl::WrapUnique(new Held(turn, kind, absl::Now() - asked));
}

DeviceTurn::Held::~Held() {
  if (turn_ != nullptr) turn_->Unlock(kind_);
}

bool DeviceTurn::Lock(Kind kind, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return kind == Kind::kAlone ? LockAlone(deadline) : LockShared(deadline);
}

bool DeviceTurn::LockAlone(absl::Time deadline) {
  const uint64_t number = num_asked_alone_++;
  waiting_alone_.push_back(number);
  const auto is_next = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !is_held_alone_ && num_sharing_ == 0 && waiting_alone_.front() == number;
  };
  const bool is_had = mutex_.AwaitWithDeadline(absl::Condition(&is_next), deadline);
  is_held_alone_ |= is_had;
  waiting_alone_.erase(std::find(waiting_alone_.begin(), waiting_alone_.end(), number));
  // Whoever waited to share waited for this one.
  if (!is_had && !is_held_alone_ && waiting_alone_.empty()) LetSharersIn();
  return is_had;
}

bool DeviceTurn::LockShared(absl::Time deadline) {
  if (!is_held_alone_ && waiting_alone_.empty()) {
    ++num_sharing_;
    return true;
  }
  ++num_waiting_to_share_;
  const uint64_t number = num_let_in_;
  const auto is_let_in = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_let_in_ > number; };
  if (mutex_.AwaitWithDeadline(absl::Condition(&is_let_in), deadline)) return true;
  --num_waiting_to_share_;
  return false;
}

// They are counted here, so that nobody who asks to be alone comes between.
void DeviceTurn::LetSharersIn() {
  num_sharing_ += std::exchange(num_waiting_to_share_, 0);
  ++num_let_in_;
  num_alone_in_row_ = 0;
}

void DeviceTurn::Unlock(Kind kind) {
  absl::MutexLock lock(&mutex_);
  if (kind == Kind::kShared) {
    --num_sharing_;
    return;
  }
  is_held_alone_ = false;
  ++num_alone_in_row_;
  // Whoever waits to be alone needs no time until others have done.
  if (waiting_alone_.empty() || num_alone_in_row_ >= kAloneInRowMax) LetSharersIn();
}

bool DeviceTurn::AwaitCompany(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  const auto has_company = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return num_sharing_ > 1; };
  return mutex_.AwaitWithDeadline(absl::Condition(&has_company), deadline);
}

}  // namespace warpsmith
