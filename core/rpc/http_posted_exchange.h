// An exchange whose answer is handed to the server's thread. For core/rpc/http_server.cc alone.
#ifndef WARPSMITH_CORE_RPC_HTTP_POSTED_EXCHANGE_H_
#define WARPSMITH_CORE_RPC_HTTP_POSTED_EXCHANGE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/rpc/http_shared.h"

namespace warpsmith::http_connection {

// `Connection` has Write, BeginStream, SendPiece and EndStream, for the server's thread. May outlive it.
template <class Connection>
class PostedExchange final : public HttpExchange {
 public:
  PostedExchange(HttpRequest request, const std::shared_ptr<Connection>& connection,
                 std::shared_ptr<Mailbox> mailbox)
      : request_(std::move(request)), connection_(connection), mailbox_(std::move(mailbox)) {}

  const HttpRequest& request() const override { return request_; }

  void Respond(HttpResponse response) override {
    if (!Advance(Stage::kUnanswered, Stage::kAnswered)) return;
    Post([answer = std::move(response)](Connection* connection) mutable {
      connection->Write(std::move(answer));
    });
  }

  void BeginStream(HttpResponse head) override {
    if (!Advance(Stage::kUnanswered, Stage::kStreaming)) return;
    Post([head = std::move(head)](Connection* connection) mutable {
      connection->BeginStream(std::move(head));
    });
  }

  void SendPiece(std::string piece) override {
    if (!Advance(Stage::kStreaming, Stage::kStreaming)) return;
    Post([piece = std::move(piece)](Connection* connection) { connection->SendPiece(piece); });
  }

  void EndStream() override {
    if (!Advance(Stage::kStreaming, Stage::kAnswered)) return;
    Post([](Connection* connection) { connection->EndStream(); });
  }

  void OnAbandoned(std::function<void()> abandoned) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stage_ != Stage::kAbandoned) {
        if (stage_ != Stage::kAnswered) abandoned_ = std::move(abandoned);
        return;
      }
    }
    abandoned();
  }

  // The client is gone.
  void Abandon() {
    std::function<void()> abandoned;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stage_ == Stage::kAnswered) return;
      stage_ = Stage::kAbandoned;
      abandoned.swap(abandoned_);
    }
    if (abandoned) abandoned();
  }

 private:
  enum class Stage { kUnanswered, kStreaming, kAnswered, kAbandoned };

  // False where the stage is not `from`.
  bool Advance(Stage from, Stage to) {
    std::function<void()> not_needed;  // destroyed without the lock
    std::lock_guard<std::mutex> lock(mutex_);
    if (stage_ != from) return false;
    stage_ = to;
    if (to == Stage::kAnswered) not_needed.swap(abandoned_);
    return true;
  }

  template <class Work>
  void Post(Work work) {
    mailbox_->Post([connection = connection_, work = std::move(work)]() mutable {
      if (const auto alive = connection.lock()) work(alive.get());
    });
  }

  const HttpRequest request_;
  const std::weak_ptr<Connection> connection_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::mutex mutex_;
  Stage stage_ = Stage::kUnanswered;
  std::function<void()> abandoned_;
};

}  // namespace warpsmith::http_connection

#endif  // WARPSMITH_CORE_RPC_HTTP_POSTED_EXCHANGE_H_
