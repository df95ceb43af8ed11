#include "reward_service/grading/serving_lanes.h"

namespace warpsmith {

void ServingLanes::Add(v1::Device device) {
  absl::MutexLock lock(&mutex_);
  ++num_serving_[device];
}

bool ServingLanes::OthersServe(v1::Device device) const {
  absl::MutexLock lock(&mutex_);
  return num_serving_.at(device) > 1;
}

bool ServingLanes::Rest(v1::Device device, absl::FunctionRef<bool()> revive) {
  {
    absl::MutexLock lock(&mutex_);
    int& num_serving = num_serving_[device];
    if (num_serving == 1) return true;
    --num_serving;
    ++num_lost_;
  }
  do {
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closed_), pause_)) return false;
  } while (!revive());
  absl::MutexLock lock(&mutex_);
  ++num_serving_[device];
  --num_lost_;
  return true;
}

int ServingLanes::num_lost() const {
  absl::MutexLock lock(&mutex_);
  return num_lost_;
}

void ServingLanes::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

}  // namespace warpsmith
