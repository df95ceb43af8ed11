// An exchange of no connection, for tests of HTTP handlers: keeps what is answered.
#ifndef WARPSMITH_TESTS_SUPPORT_RECORDED_EXCHANGE_H_
#define WARPSMITH_TESTS_SUPPORT_RECORDED_EXCHANGE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/rpc/http_server.h"

namespace warpsmith {

// Any thread may answer.
class RecordedExchange final : public HttpExchange {
 public:
  explicit RecordedExchange(HttpRequest request) : request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }

  void Respond(HttpResponse response) override {
    absl::MutexLock lock(&mutex_);
    ++num_answers_;
    response_ = std::move(response);
    has_ended_ = true;
  }
  void BeginStream(HttpResponse head) override {
    absl::MutexLock lock(&mutex_);
    ++num_answers_;
    response_ = std::move(head);
  }
  void SendPiece(std::string piece) override {
    absl::MutexLock lock(&mutex_);
    response_->body += piece;
  }
  void EndStream() override {
    absl::MutexLock lock(&mutex_);
    has_ended_ = true;
  }
  void OnAbandoned(std::function<void()> abandoned) override {
    absl::MutexLock lock(&mutex_);
    abandoned_ = std::move(abandoned);
  }

  // The client hangs up.
  void Abandon() {
    std::function<void()> abandoned;
    {
      absl::MutexLock lock(&mutex_);
      abandoned.swap(abandoned_);
    }
    if (abandoned) abandoned();
  }

  // The whole answer, all pieces of a stream in its body; nothing within a minute: none.
  std::optional<HttpResponse> Await() {
    absl::MutexLock lock(&mutex_);
    const bool ended = mutex_.AwaitWithTimeout(absl::Condition(&has_ended_), absl::Minutes(1));
    return ended ? response_ : std::nullopt;
  }
  int num_answers() {
    absl::MutexLock lock(&mutex_);
    return num_answers_;
  }

 private:
  const HttpRequest request_;
  absl::Mutex mutex_;
  std::optional<HttpResponse> response_;
  int num_answers_ = 0;
  bool has_ended_ = false;
  std::function<void()> abandoned_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_RECORDED_EXCHANGE_H_
