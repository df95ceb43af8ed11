// A queue with a capacity, where threads meet.
#ifndef WARPSMITH_CORE_BASE_BOUNDED_QUEUE_H_
#define WARPSMITH_CORE_BASE_BOUNDED_QUEUE_H_

#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace warpsmith {

// First in, first out, for any number of producers and consumers. Close() wakes all of them: producers are
// refused from then on, consumers get what is left and then nothing.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits at most `timeout` for room. False, with `item` untouched, when there was none or the queue is
  // closed.
  bool Push(T&& item, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &BoundedQueue::HasRoomOrClosed), timeout);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    return true;
  }

  // As Push, without waiting.
  bool TryPush(T&& item) { return Push(std::move(item), absl::ZeroDuration()); }

  // Waits at most `timeout` for an item. Nothing on timeout, or when the queue is closed and empty.
  std::optional<T> Pop(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &BoundedQueue::HasItemOrClosed), timeout);
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  // True once closed and drained: no item will come any more.
  bool Finished() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return closed_ && items_.empty();
  }

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return items_.size();
  }

 private:
  bool HasRoomOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || items_.size() < capacity_;
  }
  bool HasItemOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !items_.empty(); }

  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_BOUNDED_QUEUE_H_
