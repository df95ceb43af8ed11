// What all connections of one HTTP server share. For core/rpc/http_server.cc alone.
#ifndef WARPSMITH_CORE_RPC_HTTP_SHARED_H_
#define WARPSMITH_CORE_RPC_HTTP_SHARED_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/rpc/http_server.h"

namespace warpsmith {

// Posts to the server's thread, for objects that may outlive the server.
class Mailbox {
 public:
  explicit Mailbox(boost::asio::io_context* context) : context_(context) {}
  template <class Work>
  void Post(Work&& work) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (context_ != nullptr) boost::asio::post(*context_, std::forward<Work>(work));
  }
  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* context_;
};

// How many requests have no answer, or not all of it.
class OpenRequests {
 public:
  void Add(int change) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    count_ += change;
  }
  bool AwaitNone(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(this, &OpenRequests::None), timeout);
  }

 private:
  bool None() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return count_ == 0; }

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What all connections of a server share.
struct HttpShared {
  HttpServerOptions options;
  HttpHandler handler;
  std::atomic<int> num_connections{0};
  std::shared_ptr<Mailbox> mailbox;
  OpenRequests open_requests;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HTTP_SHARED_H_
