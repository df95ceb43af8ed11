// Abseil's locks once more, for builds with ThreadSanitizer, which would not see those of the distribution:
// that library is not instrumented, so everything they guard would look unguarded. Linked into a test, these
// definitions take the place of the library's for the whole process, gRPC included, whose hand-overs show as
// well.
//
// Simple rather than fast: a reader locks like a writer, and an unlock wakes all that wait.
#include <linux/futex.h>
#include <sanitizer/tsan_interface.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

using Word = std::atomic<intptr_t>;

// Of a Mutex. The lower half of the word counts unlocks: what those that wait sleep on. The kernel looks at
// 32 bits.
constexpr intptr_t kCount = 0xffffffff;
constexpr intptr_t kHeld = kCount + 1;
constexpr intptr_t kContended = kHeld << 1;  // somebody sleeps until it is free, or is about to
constexpr intptr_t kAwaited = kHeld << 2;    // somebody sleeps until a condition may hold, or is about to

// Who sleeps on a word, or is woken.
constexpr int kLockers = 1;
constexpr int kAwaiters = 2;

int32_t* LowerHalf(Word& word) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<int32_t*>(&word);
}

// Returns when woken, at the deadline, when the count is not `count`, or for no reason.
void Sleep(Word& word, intptr_t count, int who, absl::Time deadline) {
  const timespec until = absl::ToTimespec(deadline);
  syscall(SYS_futex, LowerHalf(word), FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
          static_cast<int32_t>(count), deadline == absl::InfiniteFuture() ? nullptr : &until, nullptr, who);
}

// The word may be gone by now: waking nobody at its place does no harm.
void Wake(int32_t* lower_half, int who, int num_max) {
  syscall(SYS_futex, lower_half, FUTEX_WAKE_BITSET_PRIVATE, num_max, nullptr, nullptr, who);
}

void Acquire(Word& word) {
  intptr_t seen = word.load(std::memory_order_relaxed);
  while (true) {
    if ((seen & kHeld) == 0) {
      if (word.compare_exchange_weak(seen, seen | kHeld, std::memory_order_acquire)) return;
    } else if ((seen & kContended) != 0 || word.compare_exchange_weak(seen, seen | kContended)) {
      Sleep(word, seen & kCount, kLockers, absl::InfiniteFuture());
      seen = word.load(std::memory_order_relaxed);
    }
  }
}

enum class Next {
  kGo,          // the holder may have changed what others wait for
  kAwait,       // so here; then it waits for a condition itself
  kAwaitAgain,  // it looked, and waits on: waking others would have them wake it, for ever
};

// Returns the count that the caller may sleep on, if it waits.
intptr_t Release(Word& word, Next what_next) {
  int32_t* const lower_half = LowerHalf(word);
  intptr_t seen = word.load(std::memory_order_relaxed);
  intptr_t next = 0;
  do {
    next = ((seen + 1) & kCount) | (what_next == Next::kGo ? 0 : kAwaited);
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_release));
  const int who = ((seen & kContended) != 0 ? kLockers : 0) |
                  ((seen & kAwaited) != 0 && what_next != Next::kAwaitAgain ? kAwaiters : 0);
  if (who != 0) Wake(lower_half, who, INT_MAX);
  return next & kCount;
}

}  // namespace

Mutex::~Mutex() { __tsan_mutex_destroy(this, __tsan_mutex_not_static); }

void Mutex::Lock() {
  __tsan_mutex_pre_lock(this, 0);
  Acquire(mu_);
  __tsan_mutex_post_lock(this, 0, 0);
}

void Mutex::Unlock() {
  __tsan_mutex_pre_unlock(this, 0);
  Release(mu_, Next::kGo);
  __tsan_mutex_post_unlock(this, 0);
}

bool Mutex::TryLock() {
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
  intptr_t seen = mu_.load(std::memory_order_relaxed);
  bool taken = false;
  while (!taken && (seen & kHeld) == 0) taken = mu_.compare_exchange_weak(seen, seen | kHeld);
  __tsan_mutex_post_lock(this, __tsan_mutex_try_lock | (taken ? 0 : __tsan_mutex_try_lock_failed), 0);
  return taken;
}

// Nobody but the waiter evaluates its condition, and with the lock held: so ThreadSanitizer sees the
// condition's reads guarded.
bool Mutex::AwaitWithDeadline(const Condition& condition, absl::Time deadline) {
  for (Next what_next = Next::kAwait; !condition.Eval(); what_next = Next::kAwaitAgain) {
    if (absl::Now() >= deadline) return false;
    __tsan_mutex_pre_unlock(this, 0);
    const intptr_t count = Release(mu_, what_next);
    __tsan_mutex_post_unlock(this, 0);
    Sleep(mu_, count, kAwaiters, deadline);
    Lock();
  }
  return true;
}

bool Mutex::AwaitWithTimeout(const Condition& condition, absl::Duration timeout) {
  return AwaitWithDeadline(condition, absl::Now() + timeout);
}

void Mutex::Await(const Condition& condition) { AwaitWithDeadline(condition, absl::InfiniteFuture()); }

bool Mutex::LockWhenWithDeadline(const Condition& condition, absl::Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, absl::Duration timeout) {
  return LockWhenWithDeadline(condition, absl::Now() + timeout);
}

void Mutex::LockWhen(const Condition& condition) { LockWhenWithDeadline(condition, absl::InfiniteFuture()); }

void Mutex::ReaderLock() { Lock(); }
void Mutex::ReaderUnlock() { Unlock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }
void Mutex::ReaderLockWhen(const Condition& condition) { LockWhen(condition); }
bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition, absl::Time deadline) {
  return LockWhenWithDeadline(condition, deadline);
}
bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition, absl::Duration timeout) {
  return LockWhenWithTimeout(condition, timeout);
}

// The library's would read the word in its own way.
void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}
void Mutex::ForgetDeadlockInfo() {}

CondVar::~CondVar() {}

bool CondVar::WaitWithDeadline(Mutex* mutex, absl::Time deadline) {
  const intptr_t count = cv_.load() & kCount;
  mutex->Unlock();
  Sleep(cv_, count, kAwaiters, deadline);
  mutex->Lock();
  return absl::Now() >= deadline;
}

bool CondVar::WaitWithTimeout(Mutex* mutex, absl::Duration timeout) {
  return WaitWithDeadline(mutex, absl::Now() + timeout);
}

void CondVar::Wait(Mutex* mutex) { WaitWithDeadline(mutex, absl::InfiniteFuture()); }

void CondVar::Signal() {
  int32_t* const lower_half = LowerHalf(cv_);
  cv_.fetch_add(1);
  Wake(lower_half, kAwaiters, 1);
}

void CondVar::SignalAll() {
  int32_t* const lower_half = LowerHalf(cv_);
  cv_.fetch_add(1);
  Wake(lower_half, kAwaiters, INT_MAX);
}

Notification::~Notification() { MutexLock wait_for_notify(&mutex_); }

void Notification::Notify() {
  MutexLock lock(&mutex_);
  notified_yet_.store(true);
}

bool Notification::WaitForNotificationWithDeadline(absl::Time deadline) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithDeadline(Condition(&HasBeenNotifiedInternal, &notified_yet_), deadline);
}

bool Notification::WaitForNotificationWithTimeout(absl::Duration timeout) const {
  return WaitForNotificationWithDeadline(absl::Now() + timeout);
}

void Notification::WaitForNotification() const { WaitForNotificationWithDeadline(absl::InfiniteFuture()); }

// As often as it was counted down, so that each caller's work shows as done before.
bool BlockingCounter::DecrementCount() {
  MutexLock lock(&lock_);
  done_ = --count_ == 0;
  return done_;
}

void BlockingCounter::Wait() {
  MutexLock lock(&lock_);
  lock_.Await(Condition(&done_));
}

ABSL_NAMESPACE_END
}  // namespace absl
