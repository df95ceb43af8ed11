// Places that a few at a time should have, and that nobody waits for without end.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_FEW_AT_A_TIME_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_FEW_AT_A_TIME_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {

// For work that is quicker where few do it at once, and right beside others, too. Thread-safe.
class FewAtATime {
 public:
  explicit FewAtATime(int num_places) : num_free_(num_places) {}

  // Of work that takes some 50 ms: beyond that somebody hangs.
  static constexpr absl::Duration kWaitMax = absl::Seconds(2);

  // Has a place while this lives, or goes on without it where none was free in time. Nothing is had, or waited for,
  // of places that are null.
  class Held {
   public:
    explicit Held(FewAtATime* places, absl::Duration wait_max = kWaitMax)
        : places_(places),
          has_it_(places != nullptr && places->Take(wait_max)),
          waited_(absl::Now() - asked_) {}
    ~Held() {
      if (has_it_) places_->Leave();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    absl::Duration waited() const { return waited_; }

   private:
    const absl::Time asked_ = absl::Now();
    FewAtATime* const places_;
    const bool has_it_;
    const absl::Duration waited_;
  };

 private:
  bool Take(absl::Duration wait_max) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_free_ > 0; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&is_free), wait_max)) return false;
    --num_free_;
    return true;
  }
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++num_free_;
  }

  absl::Mutex mutex_;
  int num_free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_FEW_AT_A_TIME_H_
